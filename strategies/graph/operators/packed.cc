// Operators on the packed projection [batch, sequence, columns] of queries, keys and values
// (transformer.h): heads lie by key-value group, the query heads of a group, then its key head,
// then its value head. A rank has whole groups.
#include <fmt/format.h>

#include "strategies/graph/implementation.h"
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
  return foreshard::kernels_of(pass, Implementation::kEager);
}

void rope_backward(Gradients& gradients) {
  gradients.give(
      0, gradients.add("rope_gradient", "", {gradients.of_output(0)}, gradients.op().settings)[0]);
}

std::vector<SettingDefinition> rope_settings() {
  return {{.name = "query_heads", .fallback = std::int64_t{1}, .required = true, .doc = "Of all."},
          {.name = "kv_heads",
           .fallback = std::int64_t{1},
           .required = true,
           .doc = "Of the keys, and of the values; groups of query heads share them."},
          {.name = "eager", .fallback = false, .doc = "A kernel for each operator of PyTorch."}};
}

}  // namespace

OperatorDefinition rope() {
  return {.name = "rope",
          .doc =
              "Turns the queries and keys of a packed projection by their positions (rotary "
              "position embedding).",
          .inputs = "x",
          .outputs = "y",
          .settings = rope_settings(),
          .infer = infer_rope,
          .kernels = rope_kernels<PassKind::kRopeForward>,
          .gradient = rope_backward};
}

OperatorDefinition rope_gradient() {
  return {.name = "rope_gradient",
          .doc = "The gradient of `rope`: turns back.",
          .inputs = "dy",
          .outputs = "dx",
          .settings = rope_settings(),
          .infer = infer_rope,
          .kernels = rope_kernels<PassKind::kRopeBackward>};
}

}  // namespace foreshard::operators
