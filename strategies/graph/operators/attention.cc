// Fused attention on separate queries, keys and values.
#include <numeric>

#include "strategies/graph/operators/internal/families.h"
#include "strategies/graph/operators/internal/support.h"

namespace foreshard::operators {
namespace {

std::string fault_in(const Shape& q, const Shape& k, const Shape& v) {
  if (q.size() != 4 || k.size() != 4 || v.size() != 4)
    return "needs [batch, heads, sequence, width] for queries, keys and values";
  if (k != v) return "keys " + text_of(k) + " and values " + text_of(v) + " differ in shape";
  if (q[0] != k[0] || q[3] != k[3])
    return "queries " + text_of(q) + " and keys " + text_of(k) + " differ in batch or width";
  if (k[1] == 0 || q[1] % k[1] != 0)
    return std::to_string(q[1]) + " query heads do not divide into " + std::to_string(k[1]) +
           " key heads";
  return {};
}

// Factors of attention. The number of query heads is the number of key heads times the queries per
// key. Without a mask the sequence of queries can be split; with a causal mask the parts would
// differ in work.
struct AttentionFactors {
  RuleMaker make;
  RuleMaker::Dimensions query;
  RuleMaker::Dimensions key;
};

AttentionFactors factors_of(const Shape& q, const Shape& k, bool causal) {
  AttentionFactors f;
  const std::int32_t batch = f.make.factor(q[0], false, "batch");
  const std::int32_t heads = f.make.factor(k[1], false, "heads");
  const std::int32_t group = f.make.factor(q[1] / k[1], false, "group");
  const std::int32_t queries = f.make.factor(q[2], causal, "queries");
  const std::int32_t keys = f.make.factor(k[2], true, "keys");
  const std::int32_t width = f.make.factor(q[3], true, "width");
  f.query = {{batch}, {heads, group}, {queries}, {width}};
  f.key = {{batch}, {heads}, {keys}, {width}};
  return f;
}

Result<Inferred> infer_attention(const Call& call) {
  const Shape& q = call.inputs[0].shape;
  const Shape& k = call.inputs[1].shape;
  if (const auto why = fault_in(q, k, call.inputs[2].shape); !why.empty()) return wrong(why);
  auto f = factors_of(q, k, call.settings.flag("causal"));
  f.make.input(f.query).input(f.key).input(f.key).output(f.query);
  f.make.output({f.query[0], f.query[1], f.query[2]});
  return Inferred{{call.inputs[0], {DType::kFp32, {q[0], q[1], q[2]}}}, f.make.take()};
}

Attention kernel_of(const Call& local, std::size_t query, std::size_t key, Direction direction) {
  const Shape& q = local.inputs[query].shape;
  const Shape& k = local.inputs[key].shape;
  return {.batch = q[0],
          .query_heads = q[1],
          .kv_heads = k[1],
          .query_length = q[2],
          .key_length = k[2],
          .head_dim = q[3],
          .causal = local.settings.flag("causal"),
          .direction = direction,
          .dtype = local.inputs[query].dtype};
}

std::vector<Kernel> attention_kernels(const Call& local, const Call&) {
  return {kernel_of(local, 0, 1, Direction::kForward)};
}

void attention_backward(Gradients& gradients) {
  if (!gradients.of_output(0).valid()) return;
  const auto parts = gradients.add("attention_gradient", "",
                                   {gradients.of_output(0), gradients.input(0), gradients.input(1),
                                    gradients.input(2), gradients.output(0), gradients.output(1)},
                                   gradients.op().settings);
  for (std::size_t i = 0; i < 3; ++i) gradients.give(i, parts[i]);
}

Result<Inferred> infer_attention_gradient(const Call& call) {
  const Shape& q = call.inputs[1].shape;
  const Shape& k = call.inputs[2].shape;
  if (const auto why = fault_in(q, k, call.inputs[3].shape); !why.empty()) return wrong(why);
  if (call.inputs[0].shape != q || call.inputs[4].shape != q ||
      call.inputs[5].shape != Shape(q.begin(), q.end() - 1))
    return wrong("gradient, result and log-sum-exp do not fit the queries");
  auto f = factors_of(q, k, call.settings.flag("causal"));
  f.make.input(f.query).input(f.query).input(f.key).input(f.key).input(f.query);
  f.make.input({f.query[0], f.query[1], f.query[2]});
  f.make.output(f.query).output(f.key).output(f.key);
  return Inferred{{call.inputs[1], call.inputs[2], call.inputs[3]}, f.make.take()};
}

std::vector<Kernel> attention_gradient_kernels(const Call& local, const Call&) {
  return {kernel_of(local, 1, 2, Direction::kBackward)};
}

std::vector<SettingDefinition> attention_settings() {
  return {{.name = "causal",
           .fallback = true,
           .doc = "A query sees the keys before it alone; its sequence must then be whole."}};
}

}  // namespace

OperatorDefinition attention() {
  return {.name = "attention",
          .doc =
              "softmax(Q K^T / sqrt(width)) V on [batch, heads, sequence, width], fused; fewer "
              "key heads than query heads are shared by groups of these.",
          .inputs = "queries, keys, values",
          .outputs = "y, logsumexp",
          .least_inputs = 3,
          .most_inputs = 3,
          .settings = attention_settings(),
          .infer = infer_attention,
          .kernels = attention_kernels,
          .gradient = attention_backward};
}

OperatorDefinition attention_gradient() {
  return {.name = "attention_gradient",
          .doc = "The gradients of `attention`.",
          .inputs = "dy, queries, keys, values, y, logsumexp",
          .outputs = "dqueries, dkeys, dvalues",
          .least_inputs = 6,
          .most_inputs = 6,
          .settings = attention_settings(),
          .infer = infer_attention_gradient,
          .kernels = attention_gradient_kernels};
}

}  // namespace foreshard::operators
