#include "strategies/graph/graph.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace foreshard {
namespace {

std::int64_t product(const std::vector<std::int64_t>& shape) {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  return n;
}

// A letter of both inputs and the output is a batch; of A and the output a row; of B and the output
// a column; of A and B alone it is contracted. A letter's extent is the largest that an operand
// has: with grouped-query attention K has fewer heads than Q, and every one of Q's needs a product.
Gemm gemm_of(const Operator& op, const std::vector<std::vector<std::int64_t>>& shapes,
             DType dtype) {
  const auto letters = operand_letters(op.equation);
  FORESHARD_CHECK(letters.size() == 3 && shapes.size() == 3);
  std::map<char, std::int64_t> extent;
  std::map<char, int> operands;  // a bit per operand that has the letter
  for (std::size_t i = 0; i < letters.size(); ++i) {
    for (std::size_t d = 0; d < letters[i].size(); ++d) {
      std::int64_t& largest = extent[letters[i][d]];
      largest = std::max(largest, shapes[i][d]);
      operands[letters[i][d]] |= 1 << i;
    }
  }
  Gemm gemm{.batch = 1, .m = 1, .n = 1, .k = 1, .dtype = dtype, .accumulate = op.accumulates};
  for (const auto& [letter, where] : operands) {
    FORESHARD_CHECK(where != 0b100);
    std::int64_t& dimension = where == 0b111   ? gemm.batch
                              : where == 0b101 ? gemm.m
                              : where == 0b110 ? gemm.n
                                               : gemm.k;
    dimension *= extent[letter];
  }
  return gemm;
}

}  // namespace

TensorId Graph::add(Tensor tensor) {
  tensors.push_back(std::move(tensor));
  return TensorId{static_cast<std::int64_t>(tensors.size()) - 1};
}

std::vector<std::string> operand_letters(const std::string& equation) {
  std::vector<std::string> operands(1);
  for (std::size_t i = 0; i < equation.size(); ++i) {
    if (equation[i] == ',') {
      operands.emplace_back();
    } else if (equation[i] == '-') {
      operands.emplace_back();
      ++i;  // the '>'
    } else {
      operands.back() += equation[i];
    }
  }
  return operands;
}

std::int64_t elements(const Tensor& tensor) {
  return product(tensor.shape);
}

std::optional<Kernel> kernel_of(const Operator& op,
                                const std::vector<std::vector<std::int64_t>>& local_shapes,
                                const std::vector<std::vector<std::int64_t>>& whole_shapes,
                                DType dtype) {
  switch (op.kind) {
    case OperatorKind::kView:
      return std::nullopt;
    case OperatorKind::kDefined:
      FORESHARD_CHECK(false && "kernels_of() has the kernels of a defined operator");
      return std::nullopt;
    case OperatorKind::kMatmul:
      return gemm_of(op, local_shapes, dtype);
    case OperatorKind::kPass: {
      const auto& shape = local_shapes[static_cast<std::size_t>(op.extent)];
      FORESHARD_CHECK(!shape.empty());
      const std::int64_t columns = shape.back();
      return Pass{.kind = op.pass,
                  .rows = columns == 0 ? 0 : product(shape) / columns,
                  .columns = columns,
                  .dtype = dtype};
    }
    case OperatorKind::kAttention: {
      // Operand 0 is a packed projection [batch, sequence, heads]; how many ways it is split along
      // the heads tells how many heads this rank has.
      const std::int64_t parts = whole_shapes[0][2] / local_shapes[0][2];
      return Attention{.batch = local_shapes[0][0],
                       .query_heads = op.heads.query_heads / parts,
                       .kv_heads = std::max<std::int64_t>(1, op.heads.kv_heads / parts),
                       .query_length = local_shapes[0][1],
                       .key_length = whole_shapes[0][1],
                       .head_dim = op.heads.head_dim,
                       .causal = op.causal,
                       .direction = op.direction,
                       .dtype = dtype,
                       .implementation = op.attention};
    }
  }
  return std::nullopt;
}

}  // namespace foreshard
