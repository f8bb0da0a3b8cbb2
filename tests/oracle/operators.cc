#include "tests/oracle/operators.h"

#include <limits>

#include "tests/oracle/internal/defined.h"

namespace foreshard::execute {
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
  return find_defined(op.type) != nullptr;
}

void compute(const Operator& op, std::span<const Operand> inputs, std::span<Operand> outputs,
             const KernelContext& context) {
  find_defined(op.type)({op, inputs, outputs, context});
}

}  // namespace foreshard::execute
