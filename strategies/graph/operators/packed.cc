// Operators on the packed projection [batch, sequence, columns] of queries, keys and values
// (transformer.h): heads lie by key-value group, the query heads of a group, then its key head,
// then its value head. A rank has whole groups.
#include <fmt/format.h>

#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

// Why `x` is no packed projection of such heads; empty if it is one.
std::string fault_in(const Shape& x, std::int64_t query_heads, std::int64_t kv_heads) {
  if (x.size() != 3) return "needs [batch, sequence, columns], not " + text_of(x);
  if (kv_heads < 1 || query_heads < kv_heads || query_heads % kv_heads != 0)
    return fmt::format("{} query heads do not divide into {} key heads", query_heads, kv_heads);
  if (x[2] % (query_heads + 2 * kv_heads) != 0)
    return fmt::format("{} columns do not divide into {} + 2 x {} heads", x[2], query_heads,
                       kv_heads);
  return {};
}

Result<Inferred> infer_rope(const Call& call) {
  const Shape& x = call.inputs[0].shape;
  const std::int64_t groups = call.settings.integer("kv_heads");
  if (const auto why = fault_in(x, call.settings.integer("query_heads"), groups); !why.empty())
    return wrong(why);
  RuleMaker make;
  auto factors = make.each({x[0], x[1]});
  factors.push_back({make.factor(groups, false, "groups")});
  make.input(factors).output(factors);
  return Inferred{{call.inputs[0]}, make.take()};
}

// Queries and keys turn, values do not: a fused kernel copies them, others leave them alone.
template <PassKind kind>
std::vector<Kernel> rope_kernels(const Call& local, const Call&) {
  Pass pass = std::get<Pass>(pass_over(kind, local.inputs[0]));
  if (!local.settings.flag("eager")) return {pass};
  const std::int64_t queries = local.settings.integer("query_heads");
  const std::int64_t keys = local.settings.integer("kv_heads");
  pass.columns = pass.columns * (queries + keys) / (queries + 2 * keys);
  return implemented(pass, "eager");
}

void rope_backward(Gradients& gradients) {
  gradients.give(
      0, gradients.add("rope_gradient", "", {gradients.of_output(0)}, gradients.op().settings)[0]);
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

// Scales and shifts of queries and of keys: of a head's width, for all heads alike, or a number for
// each column of all heads.
struct HeadNorm {
  RuleMaker make;
  RuleMaker::Dimensions x;
  RuleMaker::Dimensions weight;
};
Result<HeadNorm> head_norm_of(const Call& call, std::size_t x_at) {
  const Shape& x = call.inputs[x_at].shape;
  const std::int64_t queries = call.settings.integer("query_heads");
  const std::int64_t keys = call.settings.integer("kv_heads");
  if (const auto why = fault_in(x, queries, keys); !why.empty()) return wrong(why);
  const std::int64_t width = x[2] / (queries + 2 * keys);
  const bool together = call.settings.flag("together");
  const bool alike = call.inputs[x_at + 1].shape == Shape{width} && !together;
  for (std::size_t i = x_at + 1; i < call.inputs.size(); ++i) {
    const std::int64_t heads = alike ? 1 : (i - x_at) % 2 == 1 ? queries : keys;
    if (call.inputs[i].shape != Shape{heads * width})
      return wrong("weights " + text_of(call.inputs[i].shape) + " do not fit " +
                   std::to_string(heads) + " heads of " + std::to_string(width));
  }
  HeadNorm norm;
  norm.x = norm.make.each({x[0], x[1]});
  norm.x.push_back({norm.make.factor(keys, together, "groups")});
  norm.weight.emplace_back();
  if (!alike) norm.weight[0] = norm.x[2];
  return norm;
}

Result<Inferred> infer_head_norm(const Call& call) {
  if (call.inputs.size() == 4) return wrong("needs a shift of queries and of keys, or none");
  auto made = head_norm_of(call, 0);
  if (!made) return made.error();
  HeadNorm norm = *std::move(made);
  norm.make.input(norm.x);
  for (std::size_t i = 1; i < call.inputs.size(); ++i) norm.make.input(norm.weight);
  norm.make.output(norm.x);
  return Inferred{{call.inputs[0]}, norm.make.take()};
}

// dy, x, scales -> dx, their gradients, those of shifts if there are any.
Result<Inferred> infer_head_norm_gradient(const Call& call) {
  if (call.inputs[0].shape != call.inputs[1].shape)
    return wrong("gradient and input differ in shape");
  auto made = head_norm_of(call, 1);
  if (!made) return made.error();
  HeadNorm norm = *std::move(made);
  norm.make.input(norm.x).input(norm.x).input(norm.weight).input(norm.weight);
  norm.make.output(norm.x);
  Inferred inferred{{call.inputs[1]}, {}};
  for (int pair = 0; pair < (call.settings.flag("shift") ? 2 : 1); ++pair) {
    for (const std::size_t scale : {std::size_t{2}, std::size_t{3}}) {
      norm.make.output(norm.weight);
      inferred.outputs.push_back(call.inputs[scale]);
    }
  }
  inferred.rule = norm.make.take();
  return inferred;
}

// Queries and keys alone: rows are heads, or all heads of a token.
std::vector<Kernel> head_norm_kernels(const Call& local, const Call& whole, PassKind layer,
                                      PassKind rms) {
  const TensorType& x = local.outputs[0];
  const std::int64_t queries = local.settings.integer("query_heads");
  const std::int64_t keys = local.settings.integer("kv_heads");
  const std::int64_t group = queries / keys + 2;
  const std::int64_t columns = local.settings.flag("together")
                                   ? x.shape[2] / group * (group - 1)
                                   : whole.outputs[0].shape[2] / (queries + 2 * keys);
  const std::int64_t normed = product(x.shape) / group * (group - 1);
  return implemented(Pass{.kind = local.settings.text("norm") == "layer" ? layer : rms,
                          .rows = columns == 0 ? 0 : normed / columns,
                          .columns = columns,
                          .dtype = x.dtype},
                     local.settings.text("kernels"));
}
std::vector<Kernel> head_norm_forward_kernels(const Call& local, const Call& whole) {
  return head_norm_kernels(local, whole, PassKind::kLayerNormForward, PassKind::kRmsNormForward);
}
std::vector<Kernel> head_norm_gradient_kernels(const Call& local, const Call& whole) {
  return head_norm_kernels(local, whole, PassKind::kLayerNormBackward, PassKind::kRmsNormBackward);
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
          .kernels = head_norm_forward_kernels,
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
          .kernels = head_norm_gradient_kernels};
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

}  // namespace foreshard::operators
