// Attention of the queries of a part of a sequence to the keys and values of the whole sequence.
// Queries are one tensor, keys and values another; each lies by key-value group as in the packed
// projection (packing.h). Values may have another width than keys.
#include <algorithm>

#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/packing.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

// The heads of separate queries and keys with values; the width follows from the queries.
Packing packing_of_parts(const Settings& settings, const Shape& queries) {
  const std::int64_t heads = settings.integer("query_heads");
  return {heads, settings.integer("kv_heads"), queries[2] / heads};
}

Shape part(const Shape& x, std::int64_t columns) {
  return {x[0], x[1], columns};
}

Result<Inferred> infer_split_queries(const Call& call) {
  const TensorType& x = call.inputs[0];
  if (const auto why = packing_fault(call.settings, x.shape); !why.empty()) return wrong(why);
  const Packing packing = packing_of(call.settings, x.shape);
  Grouped g = grouped(packing, x.shape, false, false);
  g.make.input(g.packed).output(g.packed).output(g.packed);
  return Inferred{{{x.dtype, part(x.shape, packing.queries * packing.width)},
                   {x.dtype, part(x.shape, 2 * packing.keys * packing.width)}},
                  g.make.take()};
}

// Keys and values are copied to a send buffer; queries are read in place.
std::vector<Kernel> split_queries_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kTranspose, local.outputs[1]);
}

void split_queries_backward(Gradients& gradients) {
  gradients.give(0, gradients.add("join_queries", "", gradients.of_outputs_or_zero(),
                                  gradients.op().settings)[0]);
}

Result<Inferred> infer_join_queries(const Call& call) {
  const TensorType& queries = call.inputs[0];
  const TensorType& keys = call.inputs[1];
  if (queries.shape.size() != 3 || keys.shape.size() != 3)
    return wrong("needs queries, and keys with values, of [batch, sequence, columns]");
  const TensorType x{queries.dtype, part(queries.shape, queries.shape[2] + keys.shape[2])};
  if (const auto why = packing_fault(call.settings, x.shape); !why.empty()) return wrong(why);
  const Packing packing = packing_of(call.settings, x.shape);
  if (keys.shape != part(x.shape, 2 * packing.keys * packing.width))
    return wrong("the parts do not fit the heads");
  Grouped g = grouped(packing, x.shape, false, false);
  g.make.input(g.packed).input(g.packed).output(g.packed);
  return Inferred{{x}, g.make.take()};
}

std::vector<Kernel> join_queries_kernels(const Call& local, const Call&) {
  return one_pass(PassKind::kTranspose, local.outputs[0]);
}

std::int64_t value_width(const Settings& settings, const Packing& packing) {
  const std::int64_t own = settings.integer("value_dim");
  return own > 0 ? own : packing.width;
}

// queries, keys_values[, sinks] -> y, logsumexp; queries, keys_values, y, logsumexp, dy[, sinks] ->
// gradients of the inputs.
Result<Inferred> infer_context_attention(const Call& call) {
  const TensorType& queries = call.inputs[0];
  const TensorType& keys = call.inputs[1];
  if (queries.shape.size() != 3 || keys.shape.size() != 3)
    return wrong("needs queries, and keys with values, of [batch, sequence, columns]");
  const std::int64_t heads = call.settings.integer("query_heads");
  if (heads < 1 || queries.shape[2] % heads != 0)
    return wrong("queries " + text_of(queries.shape) + " do not divide into the heads");
  const Packing packing = packing_of_parts(call.settings, queries.shape);
  const Shape packed = part(queries.shape, (packing.queries + 2 * packing.keys) * packing.width);
  if (const auto why = packing_fault(call.settings, packed); !why.empty()) return wrong(why);
  if (const auto why = attention_kernel_fault(call.settings, packed[1]); !why.empty())
    return wrong(why);
  const bool causal = call.settings.flag("causal");
  if (call.settings.flag("own_first") && call.settings.flag("ring"))
    return wrong("keys are gathered beside attention (own_first) or go round a ring, not both");
  if (!causal && (call.settings.flag("own_first") || call.settings.flag("ring")))
    return wrong(
        "keys of other ranks beside those of one's own (own_first, ring) are for a causal "
        "mask");
  const std::int64_t values = value_width(call.settings, packing);
  const std::int64_t length = causal ? packed[1] : keys.shape[1];
  if (keys.shape != Shape{packed[0], length, packing.keys * (packing.width + values)})
    return wrong("keys with values " + text_of(keys.shape) + " do not fit queries " +
                 text_of(queries.shape));
  const TensorType y{queries.dtype, part(packed, packing.queries * values)};
  const Shape statistics = part(packed, packing.queries);
  const bool forward = call.inputs.size() <= 3;
  const bool sinks = call.inputs.size() % 3 == 0;
  if (!forward && (call.inputs[2].shape != y.shape || call.inputs[3].shape != statistics ||
                   call.inputs[4].shape != y.shape))
    return wrong("result, log-sum-exp and gradient do not fit the queries");
  if (sinks && call.inputs.back().shape != Shape{packing.queries})
    return wrong("needs one sink for each query head");

  Grouped g = grouped(packing, packed, false, false);
  auto whole = g.packed;
  whole[1] = {g.make.factor(length, true, "keys")};
  g.make.input(g.packed).input(whole);
  if (!forward) g.make.input(g.packed).input(g.packed).input(g.packed);
  if (sinks) g.make.input(sinks_of(g.packed));
  g.make.output(g.packed);
  if (forward) {
    g.make.output(g.packed);
    return Inferred{{y, {DType::kFp32, statistics}}, g.make.take()};
  }
  g.make.output(whole);
  Inferred inferred{{queries, keys}, {}};
  if (sinks) {
    g.make.output(sinks_of(g.packed));
    inferred.outputs.push_back(call.inputs.back());
  }
  inferred.rule = g.make.take();
  return inferred;
}

// The kernels of one rank. A rank's queries are balanced: half of their scores with all keys are
// masked. If the rank's own tokens have a separate kernel, that kernel is causal. For the tokens of
// each other rank, either all queries see the first half of the tokens, or the second half of the
// queries sees them all, which is the same amount of work. Results are merged by their
// log-sum-exps; gradients are added up.
//
// own_first: the kernel for own tokens comes first, forward and backward, and results are merged in
// fp32, rank by rank. Each rank has its share of each packed sample, cut as sequences are.
// ring: the kernel for own tokens comes first in the forward pass and last in the backward pass,
// since keys return the way they came. Forward, results are merged after all kernels, in their own
// type, and the first result needs a pass, too. Backward, keys are first copied to a send buffer;
// the gradients of each step are copied (first step) or added to the gradients that travel on.
// lower/ring.h has the transfers.
// Source: Liu et al., "Ring Attention", arXiv 2310.01889; Brandon et al., "Striped Attention",
// arXiv 2311.09431, for the balance; NVIDIA/TransformerEngine, transformer_engine/pytorch/
// attention/dot_product_attention/context_parallel.py (AttnFuncWithCPAndKVP2P).
// Not modelled: which tokens of a window lie on which rank (each has its share of all scores); a
// step with only half of the queries merges half as much; copies of halves; kernels of two steps
// that run at the same time.
template <Direction direction>
std::vector<Kernel> context_attention_kernels(const Call& local, const Call& whole) {
  const Shape& queries = local.inputs[0].shape;
  const Shape& keys = local.inputs[1].shape;
  const Packing packing = packing_of_parts(local.settings, whole.inputs[0].shape);
  const std::int64_t values = value_width(local.settings, packing);
  const std::int64_t groups = keys[2] / (packing.width + values);
  Attention all{.batch = queries[0],
                .query_heads = groups * (packing.group() - 2),
                .kv_heads = groups,
                .query_length = queries[1],
                .key_length = keys[1],
                .head_dim = packing.width,
                .value_dim = values == packing.width ? 0 : values,
                .causal = local.settings.flag("causal"),
                .direction = direction,
                .dtype = local.inputs[0].dtype,
                .implementation = find_attention(local.settings.text("implementation")).value()};
  const bool ring = local.settings.flag("ring");
  all = in_window(all, local.settings);
  if ((!local.settings.flag("own_first") && !ring) || queries[1] == 0) return {all};
  const std::int64_t parts = keys[1] / queries[1];
  all.key_length = queries[1];
  if (all.sample > 0) all.sample = std::max<std::int64_t>(1, (all.sample + parts / 2) / parts);
  Attention other = all;
  other.key_length = (queries[1] + 1) / 2;
  other.sample = (all.sample + 1) / 2;
  other.causal = false;
  const bool is_forward = direction == Direction::kForward;
  const Pass merge{.kind = PassKind::kBinary,
                   .rows = queries[0] * queries[1],
                   .columns = is_forward ? all.query_heads * values : queries[2] + keys[2],
                   .dtype = is_forward && !ring ? DType::kFp32 : all.dtype};
  std::vector<Kernel> kernels;
  if (ring && is_forward) {
    kernels.assign(static_cast<std::size_t>(parts), other);
    kernels.front() = all;
    if (parts == 1) return kernels;
    Pass first = merge;
    first.kind = PassKind::kUnary;
    kernels.emplace_back(first);
    kernels.insert(kernels.end(), static_cast<std::size_t>(parts - 1), merge);
    return kernels;
  }
  Pass copy = merge;
  copy.kind = PassKind::kUnary;
  copy.columns = keys[2];
  if (ring && parts > 1) kernels.emplace_back(copy);
  copy.columns = merge.columns;
  for (std::int64_t part = 0; part < parts; ++part) {
    kernels.emplace_back(part == (ring ? parts - 1 : 0) ? all : other);
    if (part > 0)
      kernels.emplace_back(merge);
    else if (ring && parts > 1)
      kernels.emplace_back(copy);
  }
  return kernels;
}

std::vector<SettingDefinition> context_attention_settings() {
  auto settings = attention_kernel_settings();
  settings.push_back({.name = "own_first",
                      .fallback = false,
                      .doc = "Queries attend to the keys of their own rank while those of others "
                             "are gathered; for whole sequences, without a window."});
  settings.push_back({.name = "ring",
                      .fallback = false,
                      .doc = "Keys of other ranks go round a ring, each step beside the attention "
                             "of the one before; for whole sequences, without a window."});
  settings.push_back({.name = "value_dim",
                      .fallback = std::int64_t{0},
                      .doc = "Width of a head of the values; 0: that of the keys."});
  return settings;
}

void context_attention_backward(Gradients& gradients) {
  if (!gradients.of_output(0).valid()) return;
  std::vector<TensorId> inputs{gradients.input(0), gradients.input(1), gradients.output(0),
                               gradients.output(1), gradients.of_output(0)};
  if (gradients.op().inputs.size() > 2) inputs.push_back(gradients.input(2));
  const auto parts =
      gradients.add("context_attention_gradient", "", inputs, gradients.op().settings);
  for (std::size_t i = 0; i < parts.size(); ++i) gradients.give(i, parts[i]);
}

}  // namespace

OperatorDefinition context_attention() {
  return {.name = "context_attention",
          .doc =
              "Attention, fused, of queries that may be parts of a sequence to the keys "
              "and values of all of it.",
          .inputs = "queries, keys_values[, sinks]",
          .outputs = "y, logsumexp",
          .least_inputs = 2,
          .most_inputs = 3,
          .settings = context_attention_settings(),
          .infer = infer_context_attention,
          .kernels = context_attention_kernels<Direction::kForward>,
          .gradient = context_attention_backward};
}

OperatorDefinition context_attention_gradient() {
  return {.name = "context_attention_gradient",
          .doc = "The gradients of `context_attention`.",
          .inputs = "queries, keys_values, y, logsumexp, dy[, sinks]",
          .outputs = "dqueries, dkeys_values[, dsinks]",
          .least_inputs = 5,
          .most_inputs = 6,
          .settings = context_attention_settings(),
          .infer = infer_context_attention,
          .kernels = context_attention_kernels<Direction::kBackward>};
}

OperatorDefinition join_queries() {
  return {.name = "join_queries",
          .doc = "The packed projection of its parts: the gradient of `split_queries`.",
          .inputs = "queries, keys_values",
          .outputs = "x",
          .least_inputs = 2,
          .most_inputs = 2,
          .settings = with_heads({}),
          .infer = infer_join_queries,
          .kernels = join_queries_kernels};
}

OperatorDefinition split_queries() {
  return {.name = "split_queries",
          .doc = "Queries of a packed projection, and its keys with values, apart.",
          .inputs = "x",
          .outputs = "queries, keys_values",
          .settings = with_heads({}),
          .infer = infer_split_queries,
          .kernels = split_queries_kernels,
          .gradient = split_queries_backward};
}

}  // namespace foreshard::operators
