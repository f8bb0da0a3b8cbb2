#include "strategies/execute/operators.h"

#include <limits>

#include "base/check.h"

#include "strategies/execute/internal/defined.h"

namespace foreshard::execute {
namespace {

void pass(const Invocation& kernel) {
  switch (kernel.op.pass) {
    case PassKind::kTranspose:
      return transpose(kernel);
    case PassKind::kEmbeddingForward:
      return embedding_forward(kernel);
    case PassKind::kEmbeddingBackward:
      return embedding_backward(kernel);
    case PassKind::kCrossEntropyForward:
      return cross_entropy_forward(kernel);
    case PassKind::kCrossEntropyBackward:
      return cross_entropy_backward(kernel);
    default:
      FORESHARD_CHECK(false && "a pass that no graph holds as an operator");
  }
}

}  // namespace

Operand unwritten(const Shape& whole, const Box& box) {
  return {whole, box,
          std::vector<double>(static_cast<std::size_t>(box.elements()),
                              std::numeric_limits<double>::quiet_NaN())};
}

std::vector<std::int64_t> logical_indices(const Shape& whole, const Box& box) {
  std::vector<std::int64_t> indices{0};
  for (std::size_t d = 0; d < whole.size(); ++d) {
    std::vector<std::int64_t> next;
    next.reserve(indices.size() * at(box.end[d] - box.begin[d]));
    for (const std::int64_t index : indices) {
      for (std::int64_t i = box.begin[d]; i < box.end[d]; ++i) next.push_back(index * whole[d] + i);
    }
    indices = std::move(next);
  }
  return indices;
}

bool can_compute(const Operator& op) {
  return op.kind != OperatorKind::kDefined || find_defined(op.type) != nullptr;
}

void compute(const Operator& op, std::span<const Operand> inputs, std::span<Operand> outputs,
             const KernelContext& context) {
  const Invocation kernel{op, inputs, outputs, context};
  switch (op.kind) {
    case OperatorKind::kMatmul:
      return matmul(kernel);
    case OperatorKind::kPass:
      return pass(kernel);
    case OperatorKind::kAttention:
      return op.direction == Direction::kForward ? attention_forward(kernel)
                                                 : attention_backward(kernel);
    case OperatorKind::kView:
      if (op.reduction == Reduction::kMax) return row_maximum(kernel);
      return op.outputs.size() == 3 ? split_heads(kernel) : copy(kernel);
    case OperatorKind::kDefined:
      return find_defined(op.type)(kernel);
  }
}

}  // namespace foreshard::execute
