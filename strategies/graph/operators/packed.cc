// Operators on the packed projection of queries, keys and values (packing.h).
#include <cmath>
#include <fmt/format.h>

#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/packing.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {

Packing packing_of(const Settings& settings, const Shape& x) {
  const std::int64_t queries = settings.integer("query_heads");
  const std::int64_t keys = settings.integer("kv_heads");
  return {queries, keys, x[2] / (queries + 2 * keys)};
}

std::string packing_fault(const Settings& settings, const Shape& x) {
  const std::int64_t queries = settings.integer("query_heads");
  const std::int64_t keys = settings.integer("kv_heads");
  if (x.size() != 3) return "needs [batch, sequence, columns], not " + text_of(x);
  if (keys < 1 || queries < keys || queries % keys != 0)
    return fmt::format("{} query heads do not divide into {} key heads", queries, keys);
  if (queries > x[2] || x[2] % (queries + 2 * keys) != 0)
    return fmt::format("{} columns do not divide into {} + 2 x {} heads", x[2], queries, keys);
  return {};
}

Grouped grouped(const Packing& packing, const Shape& x, bool whole_sequence, bool whole_row) {
  Grouped g;
  g.packed = {{g.make.factor(x[0], false, "batch")},
              {g.make.factor(x[1], whole_sequence, "sequence")},
              {g.make.factor(packing.keys, whole_row, "groups")}};
  return g;
}

std::vector<SettingDefinition> with_heads(std::vector<SettingDefinition> others) {
  std::vector<SettingDefinition> settings{
      {.name = "query_heads", .fallback = std::int64_t{1}, .required = true, .doc = "Of all."},
      {.name = "kv_heads",
       .fallback = std::int64_t{1},
       .required = true,
       .doc = "Of the keys, and of the values; groups of query heads share them."}};
  settings.insert(settings.end(), others.begin(), others.end());
  return settings;
}

std::vector<SettingDefinition> attention_kernel_settings() {
  return with_heads(
      {{.name = "implementation",
        .fallback = std::string("fused"),
        .doc = "Whose kernel: the usual one of the device, or this one.",
        .words = {"fused", "triton-flash-1", "flash-2", "flash-3", "cudnn"}},
       {.name = "rate", .fallback = 0.0, .doc = "Probability with which a weight is dropped."},
       {.name = "window",
        .fallback = std::int64_t{0},
        .doc = "Tokens that a query sees, itself included; 0: all before it."},
       {.name = "chunked",
        .fallback = false,
        .doc = "The window does not slide: the sequence is cut into chunks of its length."},
       {.name = "causal",
        .fallback = true,
        .doc = "A query sees the keys before it alone; else all, without a window."},
       {.name = "sample",
        .fallback = std::int64_t{0},
        .doc = "Tokens of each of the samples that a sequence is packed of (the last may have "
               "fewer), whose queries see their own alone; 0: it is one sample."}});
}

std::string attention_kernel_fault(const Settings& settings, std::int64_t sequence) {
  const std::int64_t window = settings.integer("window");
  if (window < 0) return fmt::format("a window of {} tokens", window);
  if (window > 0 && !settings.flag("causal")) return "a window needs a causal mask";
  const std::int64_t sample = settings.integer("sample");
  if (sample < 0) return fmt::format("samples of {} tokens", sample);
  if (!settings.flag("chunked")) return rate_fault(settings);
  if (sample > 0) return "packed samples are not cut into chunks";
  if (window == 0 || sequence % window != 0)
    return fmt::format("{} tokens do not divide into chunks of {}", sequence, window);
  return rate_fault(settings);
}

Attention in_window(Attention all, const Settings& settings) {
  const std::int64_t window = settings.integer("window");
  const std::int64_t sample = settings.integer("sample");
  if (sample < all.key_length) all.sample = sample;
  if (window == 0 || window >= all.key_length) return all;
  if (!settings.flag("chunked")) {
    all.window = window;
    return all;
  }
  const std::int64_t chunks = all.key_length / window;
  all.batch *= chunks;
  all.query_length = (all.query_length + chunks - 1) / chunks;
  all.key_length = window;
  return all;
}

RuleMaker::Dimensions sinks_of(const RuleMaker::Dimensions& packed) {
  return {packed[2]};
}

namespace {

Result<Inferred> infer_rope(const Call& call) {
  const Shape& x = call.inputs[0].shape;
  if (const auto why = packing_fault(call.settings, x); !why.empty()) return wrong(why);
  Grouped g = grouped(packing_of(call.settings, x), x, false, false);
  g.make.input(g.packed).output(g.packed);
  return Inferred{{call.inputs[0]}, g.make.take()};
}

// Queries and keys rotate, values do not: a fused kernel copies values, eager kernels skip them.
template <PassKind kind>
std::vector<Kernel> rope_kernels(const Call& local, const Call& whole) {
  Pass pass = std::get<Pass>(pass_over(kind, local.inputs[0]));
  if (!local.settings.flag("eager")) return {pass};
  pass.columns = packing_of(local.settings, whole.inputs[0].shape).without_values(pass.columns);
  return implemented(pass, "eager");
}

void rope_backward(Gradients& gradients) {
  gradients.give(
      0, gradients.add("rope_gradient", "", {gradients.of_output(0)}, gradients.op().settings)[0]);
}

// Dimensions for the norm of heads. Inputs are x, then scales of queries and of keys, then
// optionally shifts of queries and of keys. A scale or shift has the width of one head, and is the
// same for all heads; or it has a number for each column of all heads.
struct HeadNorm {
  Grouped g;
  RuleMaker::Dimensions weight;
};
Result<HeadNorm> head_norm_of(const Call& call, std::size_t x_at) {
  const Shape& x = call.inputs[x_at].shape;
  if (const auto why = packing_fault(call.settings, x); !why.empty()) return wrong(why);
  const Packing packing = packing_of(call.settings, x);
  const bool together = call.settings.flag("together");
  const bool alike = call.inputs[x_at + 1].shape == Shape{packing.width} && !together;
  for (std::size_t i = x_at + 1; i < call.inputs.size(); ++i) {
    const std::int64_t heads = alike ? 1 : (i - x_at) % 2 == 1 ? packing.queries : packing.keys;
    if (call.inputs[i].shape != Shape{heads * packing.width})
      return wrong(fmt::format("weights {} do not fit {} heads of {}",
                               text_of(call.inputs[i].shape), heads, packing.width));
  }
  HeadNorm norm{grouped(packing, x, false, together), {{}}};
  if (!alike) norm.weight[0] = norm.g.packed[2];
  return norm;
}

Result<Inferred> infer_head_norm(const Call& call) {
  if (call.inputs.size() == 4) return wrong("needs a shift of queries and of keys, or none");
  FORESHARD_ASSIGN(auto norm, head_norm_of(call, 0));
  auto [g, weight] = std::move(norm);
  g.make.input(g.packed);
  for (std::size_t i = 1; i < call.inputs.size(); ++i) g.make.input(weight);
  g.make.output(g.packed);
  return Inferred{{call.inputs[0]}, g.make.take()};
}

// dy, x, scales -> dx, gradients of the scales, gradients of the shifts if there are any.
Result<Inferred> infer_head_norm_gradient(const Call& call) {
  if (call.inputs[0].shape != call.inputs[1].shape)
    return wrong("gradient and input differ in shape");
  FORESHARD_ASSIGN(auto norm, head_norm_of(call, 1));
  auto [g, weight] = std::move(norm);
  g.make.input(g.packed).input(g.packed).input(weight).input(weight).output(g.packed);
  Inferred inferred{{call.inputs[1]}, {}};
  for (int pair = 0; pair < (call.settings.flag("shift") ? 2 : 1); ++pair) {
    g.make.output(weight).output(weight);
    inferred.outputs.insert(inferred.outputs.end(), {call.inputs[2], call.inputs[3]});
  }
  inferred.rule = g.make.take();
  return inferred;
}

// A pass over queries and keys only; a row is one head, or all heads of a token (`together`).
template <PassKind layer, PassKind rms>
std::vector<Kernel> head_norm_kernels(const Call& local, const Call& whole) {
  const TensorType& x = local.outputs[0];
  const Packing packing = packing_of(local.settings, whole.outputs[0].shape);
  const std::int64_t columns =
      local.settings.flag("together") ? packing.without_values(x.shape[2]) : packing.width;
  return implemented(
      Pass{.kind = local.settings.text("norm") == "layer" ? layer : rms,
           .rows = columns == 0 ? 0 : packing.without_values(product(x.shape)) / columns,
           .columns = columns,
           .dtype = x.dtype},
      local.settings.text("kernels"));
}

void head_norm_backward(Gradients& gradients) {
  Settings settings = gradients.op().settings;
  settings.set("shift", gradients.op().inputs.size() > 3);
  const auto parts = gradients.add(
      "head_norm_gradient", "",
      {gradients.of_output(0), gradients.input(0), gradients.input(1), gradients.input(2)},
      settings);
  for (std::size_t i = 0; i < parts.size(); ++i) gradients.give(i, parts[i]);
}

std::vector<SettingDefinition> head_norm_settings(bool shift = false) {
  auto settings =
      with_heads({{.name = "norm",
                   .fallback = std::string("rms"),
                   .doc = "With the mean taken off first, or not.",
                   .words = {"layer", "rms"}},
                  {.name = "together",
                   .fallback = false,
                   .doc = "All heads of a token are normalised together, and must be whole."},
                  norm_kernels_setting()});
  if (shift)
    settings.push_back(
        {.name = "shift", .fallback = true, .doc = "There are shifts, and gradients of them."});
  return settings;
}

// x[, sinks] -> y, logsumexp; x, y, logsumexp, dy[, sinks] -> dx[, dsinks]. A query may see keys of
// the whole sequence. A sink takes weight like a key whose value is 0. With `relative`, a table
// that is added to the scores comes in place of sinks.
Result<Inferred> infer_packed_attention(const Call& call) {
  const TensorType& x = call.inputs[0];
  if (const auto why = packing_fault(call.settings, x.shape); !why.empty()) return wrong(why);
  if (const auto why = attention_kernel_fault(call.settings, x.shape[1]); !why.empty())
    return wrong(why);
  const Packing packing = packing_of(call.settings, x.shape);
  const Shape y{x.shape[0], x.shape[1], packing.queries * packing.width};
  const Shape statistics{x.shape[0], x.shape[1], packing.queries};
  const bool forward = call.inputs.size() <= 2;
  const bool sinks = call.inputs.size() % 3 == 2;
  const bool relative = call.settings.flag("relative");
  if (relative != (sinks && call.inputs.back().shape.size() == 2) ||
      (relative && call.inputs.back().shape[1] != packing.queries))
    return wrong("a table of relative positions has a column for each query head");
  if (sinks && !relative && call.inputs.back().shape != Shape{packing.queries})
    return wrong("needs one sink for each query head");
  if (!forward && (call.inputs[1].shape != y || call.inputs[2].shape != statistics ||
                   call.inputs[3].shape != y))
    return wrong("result, log-sum-exp and gradient do not fit the heads");
  Grouped g = grouped(packing, x.shape, true, false);
  for (std::size_t i = sinks ? 1 : 0; i < call.inputs.size(); ++i) g.make.input(g.packed);
  RuleMaker::Dimensions beside = sinks_of(g.packed);
  if (relative)
    beside.insert(beside.begin(), {g.make.factor(call.inputs.back().shape[0], true, "distances")});
  if (sinks) g.make.input(beside);
  g.make.output(g.packed);
  if (!forward) {  // the gradient of a narrow input has the type of the result's gradient
    const TensorType gradient{call.inputs[3].dtype, x.shape};
    if (!sinks) return Inferred{{gradient}, g.make.take()};
    g.make.output(beside);
    return Inferred{{gradient, call.inputs.back()}, g.make.take()};
  }
  g.make.output(g.packed);
  return Inferred{{{x.dtype, y}, {DType::kFp32, statistics}}, g.make.take()};
}

template <Direction direction>
std::vector<Kernel> attention_kernels(const Call& local, const Call& whole) {
  const Shape& mine = local.inputs[0].shape;
  const Packing packing = packing_of(local.settings, whole.inputs[0].shape);
  const std::int64_t groups = mine[2] / (packing.group() * packing.width);
  const Attention all{
      .batch = mine[0],
      .query_heads = groups * (packing.group() - 2),
      .kv_heads = groups,
      .query_length = mine[1],
      .key_length = whole.inputs[0].shape[1],
      .head_dim = packing.width,
      .causal = local.settings.flag("causal"),
      .direction = direction,
      .dtype = local.inputs[0].dtype,
      .implementation = find_attention(local.settings.text("implementation")).value()};
  std::vector<Kernel> kernels{in_window(all, local.settings)};
  const double copies =
      local.settings.number(direction == Direction::kForward ? "copies" : "gradient_copies");
  if (copies > 0)
    kernels.emplace_back(Pass{.kind = PassKind::kTranspose,
                              .rows = mine[0] * mine[1],
                              .columns = std::llround(copies * static_cast<double>(mine[2])),
                              .dtype = local.inputs[0].dtype});
  return kernels;
}

void packed_attention_backward(Gradients& gradients) {
  if (!gradients.of_output(0).valid()) return;
  std::vector<TensorId> inputs{gradients.input(0), gradients.output(0), gradients.output(1),
                               gradients.of_output(0)};
  if (gradients.op().inputs.size() > 1) inputs.push_back(gradients.input(1));
  const auto parts =
      gradients.add("packed_attention_gradient", "", inputs, gradients.op().settings);
  for (std::size_t i = 0; i < parts.size(); ++i) gradients.give(i, parts[i]);
}

// Queries [batch, sequence, query heads, width], keys and values [batch, sequence, key heads,
// width].
std::vector<TensorType> parts_of(const Packing& packing, const TensorType& x) {
  const TensorType q{x.dtype, {x.shape[0], x.shape[1], packing.queries, packing.width}};
  const TensorType k{x.dtype, {x.shape[0], x.shape[1], packing.keys, packing.width}};
  return {q, k, k};
}

Result<Inferred> infer_split_heads(const Call& call) {
  const TensorType& x = call.inputs[0];
  if (const auto why = packing_fault(call.settings, x.shape); !why.empty()) return wrong(why);
  const Packing packing = packing_of(call.settings, x.shape);
  Grouped g = grouped(packing, x.shape, true, false);
  auto apart = g.packed;
  apart.emplace_back();
  g.make.input(g.packed).output(apart).output(apart).output(apart);
  return Inferred{parts_of(packing, x), g.make.take()};
}

void split_heads_backward(Gradients& gradients) {
  gradients.give(0, gradients.add("join_heads", "", gradients.of_outputs_or_zero(),
                                  gradients.op().settings)[0]);
}

Result<Inferred> infer_join_heads(const Call& call) {
  const TensorType& q = call.inputs[0];
  const Shape& k = call.inputs[1].shape;
  if (q.shape.size() != 4 || k.size() != 4 || k[2] > q.shape[2])
    return wrong("needs [batch, sequence, heads, width], and no more key heads than query heads");
  const TensorType x{q.dtype,
                     {q.shape[0], q.shape[1], product({q.shape[2] + 2 * k[2], q.shape[3]})}};
  if (const auto why = packing_fault(call.settings, x.shape); !why.empty()) return wrong(why);
  const Packing packing = packing_of(call.settings, x.shape);
  if (call.inputs != parts_of(packing, x)) return wrong("the parts do not fit the heads");
  Grouped g = grouped(packing, x.shape, true, false);
  auto apart = g.packed;
  apart.emplace_back();
  g.make.input(apart).input(apart).input(apart).output(g.packed);
  return Inferred{{x}, g.make.take()};
}

std::vector<Kernel> join_heads_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kTranspose, local.outputs[0]);
}

// Rule between [batch, heads, sequence, width] and [batch, sequence, heads x width].
Rule merge_rule(const Shape& apart, bool merges) {
  RuleMaker make;
  const auto factors = make.each(apart, {3});
  const RuleMaker::Dimensions merged{
      factors[0], factors[2], {factors[1].front(), factors[3].front()}};
  make.input(merges ? factors : merged).output(merges ? merged : factors);
  return make.take();
}

Result<Inferred> infer_merge_heads(const Call& call) {
  const TensorType& x = call.inputs[0];
  if (x.shape.size() != 4) return wrong("needs [batch, heads, sequence, width]");
  return Inferred{{{x.dtype, {x.shape[0], x.shape[2], product({x.shape[1], x.shape[3]})}}},
                  merge_rule(x.shape, true)};
}

Result<Inferred> infer_merge_heads_gradient(const Call& call) {
  const TensorType& dy = call.inputs[0];
  const std::int64_t heads = call.settings.integer("heads");
  if (dy.shape.size() != 3 || heads < 1 || dy.shape[2] % heads != 0)
    return wrong("needs [batch, sequence, heads x width]");
  const Shape apart{dy.shape[0], heads, dy.shape[1], dy.shape[2] / heads};
  return Inferred{{{dy.dtype, apart}}, merge_rule(apart, false)};
}

// A transposition, in both directions over the tensor whose rows are tokens.
std::vector<Kernel> merge_heads_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kTranspose,
                  local.inputs[0].shape.size() == 3 ? local.inputs[0] : local.outputs[0]);
}

void merge_heads_backward(Gradients& gradients) {
  gradients.give(0, gradients.add("merge_heads_gradient", "", {gradients.of_output(0)},
                                  {{"heads", gradients.shape(gradients.input(0))[1]}})[0]);
}

}  // namespace

OperatorDefinition head_norm() {
  return {.name = "head_norm",
          .doc = "Normalises the query heads and the key heads of a packed projection.",
          .inputs = "x, query_scale, key_scale[, query_shift, key_shift]",
          .outputs = "y",
          .least_inputs = 3,
          .most_inputs = 5,
          .settings = head_norm_settings(),
          .infer = infer_head_norm,
          .kernels = head_norm_kernels<PassKind::kLayerNormForward, PassKind::kRmsNormForward>,
          .gradient = head_norm_backward};
}

OperatorDefinition head_norm_gradient() {
  return {.name = "head_norm_gradient",
          .doc = "The gradients of `head_norm`.",
          .inputs = "dy, x, query_scale, key_scale",
          .outputs = "dx, dquery_scale, dkey_scale[, dquery_shift, dkey_shift]",
          .least_inputs = 4,
          .most_inputs = 4,
          .settings = head_norm_settings(true),
          .infer = infer_head_norm_gradient,
          .kernels = head_norm_kernels<PassKind::kLayerNormBackward, PassKind::kRmsNormBackward>};
}

OperatorDefinition join_heads() {
  return {.name = "join_heads",
          .doc = "Queries, keys and values put together again: the gradient of `split_heads`.",
          .inputs = "queries, keys, values",
          .outputs = "x",
          .least_inputs = 3,
          .most_inputs = 3,
          .settings = with_heads({}),
          .infer = infer_join_heads,
          .kernels = join_heads_kernels};
}

OperatorDefinition merge_heads() {
  return {.name = "merge_heads",
          .doc = "Heads side by side: [batch, heads, sequence, width] to [batch, sequence, all].",
          .inputs = "x",
          .outputs = "y",
          .infer = infer_merge_heads,
          .kernels = merge_heads_kernels,
          .gradient = merge_heads_backward};
}

OperatorDefinition merge_heads_gradient() {
  return {.name = "merge_heads_gradient",
          .doc = "The gradient of `merge_heads`.",
          .inputs = "dy",
          .outputs = "dx",
          .settings = {{.name = "heads",
                        .fallback = std::int64_t{1},
                        .required = true,
                        .doc = "How many there are."}},
          .infer = infer_merge_heads_gradient,
          .kernels = merge_heads_kernels};
}

static std::vector<SettingDefinition> packed_attention_settings() {
  auto settings = attention_kernel_settings();
  settings.push_back({.name = "relative",
                      .fallback = false,
                      .doc =
                          "In place of sinks, a table of what is added to scores: a row for each "
                          "range of distances, a column for each query head."});
  settings.push_back({.name = "copies",
                      .fallback = 0.0,
                      .doc = "Passes over x that change how its parts lie, forward."});
  settings.push_back(
      {.name = "gradient_copies", .fallback = 0.0, .doc = "Likewise, of gradients."});
  return settings;
}

OperatorDefinition packed_attention() {
  return {.name = "packed_attention",
          .doc =
              "Attention on a packed projection, fused; sinks are logits that take "
              "weight from the keys of their head.",
          .inputs = "x[, sinks]",
          .outputs = "y, logsumexp",
          .most_inputs = 2,
          .settings = packed_attention_settings(),
          .infer = infer_packed_attention,
          .kernels = attention_kernels<Direction::kForward>,
          .gradient = packed_attention_backward};
}

OperatorDefinition packed_attention_gradient() {
  return {.name = "packed_attention_gradient",
          .doc = "The gradient of `packed_attention`.",
          .inputs = "x, y, logsumexp, dy[, sinks]",
          .outputs = "dx[, dsinks]",
          .least_inputs = 4,
          .most_inputs = 5,
          .settings = packed_attention_settings(),
          .infer = infer_packed_attention,
          .kernels = attention_kernels<Direction::kBackward>};
}

OperatorDefinition rope() {
  return {.name = "rope",
          .doc =
              "Turns the queries and keys of a packed projection by their positions (rotary "
              "position embedding).",
          .inputs = "x",
          .outputs = "y",
          .settings = with_heads({eager_setting()}),
          .infer = infer_rope,
          .kernels = rope_kernels<PassKind::kRopeForward>,
          .gradient = rope_backward};
}

OperatorDefinition rope_gradient() {
  return {.name = "rope_gradient",
          .doc = "The gradient of `rope`: turns back.",
          .inputs = "dy",
          .outputs = "dx",
          .settings = with_heads({eager_setting()}),
          .infer = infer_rope,
          .kernels = rope_kernels<PassKind::kRopeBackward>};
}

OperatorDefinition split_heads() {
  return {.name = "split_heads",
          .doc = "Queries, keys and values of a packed projection, apart.",
          .inputs = "x",
          .outputs = "queries, keys, values",
          .settings = with_heads({}),
          .view = true,
          .infer = infer_split_heads,
          .gradient = split_heads_backward};
}

}  // namespace foreshard::operators
