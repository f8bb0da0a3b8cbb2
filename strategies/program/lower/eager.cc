#include "strategies/program/lower/eager.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "strategies/program/lower/liveness.h"
#include "strategies/program/lower/recompute.h"

namespace foreshard::lower {
namespace {

// Bytes per element of the first result.
struct EagerOperator {
  std::string_view type;
  std::string_view kernels{};  // value of the setting "kernels"; empty: the flag "eager" is set
  double kept_fp32 = 0;        // copies in fp32 of a narrower tensor
  double kept = 0;             // tensors of the operator's own type
  double work_fp32 = 0;
  double work = 0;
};
constexpr std::array kEager{
    EagerOperator{.type = "layer_norm", .kernels = "autocast", .kept = 1, .work_fp32 = 1},
    EagerOperator{.type = "layer_norm_gradient", .kernels = "autocast", .work_fp32 = 2},
    EagerOperator{.type = "rms_norm", .kernels = "autocast", .kept = 1, .work_fp32 = 1},
    EagerOperator{.type = "rms_norm_gradient", .kernels = "autocast", .work_fp32 = 2},
    EagerOperator{.type = "head_norm", .kernels = "autocast", .kept_fp32 = 1, .work_fp32 = 1},
    EagerOperator{.type = "head_norm_gradient", .kernels = "autocast", .work_fp32 = 2},
    EagerOperator{.type = "rms_norm", .kernels = "eager", .kept_fp32 = 1, .work_fp32 = 1},
    EagerOperator{.type = "rms_norm_gradient", .kernels = "eager", .work_fp32 = 3},
    EagerOperator{.type = "head_norm", .kernels = "eager", .kept_fp32 = 1, .work_fp32 = 1},
    EagerOperator{.type = "head_norm_gradient", .kernels = "eager", .work_fp32 = 3},
    EagerOperator{.type = "swiglu", .kept = 1},
    EagerOperator{.type = "swiglu_gradient", .work = 1},
    EagerOperator{.type = "rope", .work_fp32 = 2},
    EagerOperator{.type = "rope_gradient", .work_fp32 = 2},
    EagerOperator{.type = "vocabulary_cross_entropy", .kernels = "log-softmax", .work_fp32 = 1},
    EagerOperator{.type = "vocabulary_cross_entropy_gradient",
                  .kernels = "log-softmax",
                  .work_fp32 = 2,
                  .work = -1},
};

bool is_composed(const Operator& op, const EagerOperator& as) {
  if (op.type != as.type) return false;
  return as.kernels.empty() ? op.settings.flag("eager") : op.settings.text("kernels") == as.kernels;
}

// Queries and keys of a packed projection, as a part of it: values are not normalised or rotated.
double touched_part(const Operator& op) {
  if (op.type.starts_with("head_norm") || op.type.starts_with("rope")) {
    const auto queries = static_cast<double>(op.settings.integer("query_heads"));
    const auto keys = static_cast<double>(op.settings.integer("kv_heads"));
    return (queries + keys) / (queries + 2 * keys);
  }
  return 1;
}

}  // namespace

BesideOperands beside_operands(const ShardedGraph& sharded, std::size_t op) {
  const Operator& composed = sharded.graph->operators[op];
  const auto* const known = std::ranges::find_if(
      kEager, [&](const EagerOperator& one) { return is_composed(composed, one); });
  if (known == kEager.end()) return {};
  // A loss has its statistics first and what is as large as the logits last.
  const bool is_loss = composed.type == "vocabulary_cross_entropy";
  const std::size_t o = is_loss ? composed.outputs.size() - 1 : 0;
  const Tensor& result = (*sharded.graph)[composed.outputs[o]];
  const Attribute& lies = sharded.operators[op].operands[composed.inputs.size() + o];
  const double count =
      touched_part(composed) * static_cast<double>(local_elements(result, lies, sharded.mesh));
  const DType type = (*sharded.graph)[composed.inputs.front()].dtype;
  const Bytes own = size_of(is_loss ? type : result.dtype);
  const Bytes wide = size_of(DType::kFp32);
  // Nothing is cast where the tensor is in fp32 already.
  const double casts = own < wide || known->work < 0 ? 1 : 0;
  return {.kept = count * (casts * known->kept_fp32 * wide + known->kept * own),
          .work = count * (casts * known->work_fp32 * wide + known->work * own)};
}

std::map<std::string, Bytes> kept_beside(const ShardedGraph& forward, const Graph& backward,
                                         const Recomputation& recomputation) {
  std::map<std::string, Bytes> kept;
  if (recomputation.how == Recompute::kFull) return kept;
  const auto again = recomputed_operators(*forward.graph, backward, recomputation);
  for (std::size_t i = 0; i < forward.graph->operators.size(); ++i) {
    if (std::ranges::binary_search(again, i)) continue;
    const Operator& op = forward.graph->operators[i];
    const Bytes bytes = beside_operands(forward, i).kept;
    if (bytes == 0_B) continue;
    const std::string gradient = "d." + op.name;
    if (std::ranges::find(backward.operators, gradient, &Operator::name) !=
        backward.operators.end())
      kept[op.name] = bytes;
  }
  return kept;
}

}  // namespace foreshard::lower
