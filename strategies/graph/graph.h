/// \file
/// The distributed computation view (R4.1): operators and tensors of one block of a model, each
/// tensor with its logical (whole) shape and, where the strategy sets one, a distributed attribute.
///
/// What an operator does to distribution is *data*: an equation in the manner of einsum. Every
/// letter is a factor of the iteration space; one engine (distribute.h) reads from it which
/// attributes are legal, what must be converted, and what comes out partial:
///
///     "bsi,io->bso"    matmul: `i` is reduced, so splitting `i` makes the output partial
///     "bsh,h->bsh"     with `whole = "h"`: a norm along h, which must not be split
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"

#include "strategies/graph/attribute.h"
#include "strategies/graph/implementation.h"
#include "strategies/graph/rule.h"
#include "strategies/graph/settings.h"
#include "strategies/program/ir/kernel.h"

namespace foreshard {

using TensorId = Id<struct TensorTag>;

constexpr bool is_whole_number(DType dtype) {
  return dtype == DType::kInt8 || dtype == DType::kInt32 || dtype == DType::kInt64;
}

enum class TensorRole : std::uint8_t {
  kActivation,
  kParameter,
  kParameterGradient,
};

struct Tensor {
  std::string name;
  DType dtype = DType::kBf16;
  std::vector<std::int64_t> shape;
  TensorRole role = TensorRole::kActivation;
  /// Set by the strategy: the tensor lies so, whatever its producer yields or its consumers want.
  std::optional<Attribute> pinned{};
  std::vector<std::int32_t> open{};  ///< Of pinned: dimensions that propagation may split further.
  TensorId gradient_of{};            ///< Of a parameter's gradient: the parameter.
};

enum class OperatorKind : std::uint8_t {
  kMatmul,     ///< Any einsum of two inputs: one Gemm.
  kPass,       ///< One memory-bound kernel.
  kAttention,  ///< Fused attention on the packed [batch, sequence, (q + k + v) heads] projection.
  kView,       ///< Another look at the same bytes, or work that another kernel's covers: none.
  kDefined,    ///< `type` names its definition in the table (operators/definition.h).
};

/// How heads are packed (transformer.h); whole model, not one rank.
struct HeadLayout {
  std::int64_t query_heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
};

struct Operator {
  std::string name;
  OperatorKind kind = OperatorKind::kPass;
  std::string equation{};  ///< Letters of each input, "->", letters of each output.
  std::string whole{};     ///< Letters that no axis may split.
  std::vector<TensorId> inputs{};
  std::vector<TensorId> outputs{};
  PassKind pass = PassKind::kCast;  ///< For kPass.
  std::int32_t extent = 0;          ///< For kPass: the operand (inputs, then outputs) it runs over.
  Implementation implementation = Implementation::kFused;  ///< For kPass.
  HeadLayout heads{};    ///< For kAttention, and of what else looks into heads.
  bool causal = true;    ///< Where `heads` are set: a query sees no later key.
  bool dropout = false;  ///< For kAttention: weights are dropped at random.
  AttentionImplementation attention = AttentionImplementation::kFused;  ///< For kAttention.
  Direction direction = Direction::kForward;
  bool accumulates = false;  ///< For kMatmul: adds to an fp32 gradient.
  /// Of kMatmul: a bias that its epilogue adds for nothing. Where ranks compute summands of the
  /// product, one of them adds it.
  TensorId fused_bias{};
  Reduction reduction = Reduction::kSum;  ///< Over letters that an output lacks; of kDefined: rule.
  bool linear = false;                    ///< Works on summands: takes partial inputs as they are.
  bool core_attention = false;            ///< Recomputed by selective recomputation.
  std::string type{};                     ///< For kDefined: its name in the table.
  Settings settings{};                    ///< For kDefined: complete.
  Rule rule{};                            ///< For kDefined; others have their `equation`.
  std::vector<std::int32_t> bodies{};     ///< For kDefined loops and conditions: in Graph::bodies.
};

struct Graph {
  std::string name;
  std::vector<Tensor> tensors{};
  std::vector<Operator> operators{};  ///< In a valid order of execution.
  std::vector<TensorId> inputs{};     ///< From the block before.
  std::vector<TensorId> outputs{};    ///< For the block after.
  /// Sub-graphs of loops and conditions. A body has its own tensors; its inputs and outputs stand
  /// for the operator's.
  std::vector<Graph> bodies{};
  /// Gradients of activations as frameworks of transformers have them: named after the tensor, and
  /// where several operators contribute to one, each contribution is reduced by itself. Else they
  /// are named after operators, and the sum is reduced.
  bool gradients_apart = false;

  TensorId add(Tensor tensor);
  Tensor& operator[](TensorId id) { return tensors[id.index()]; }
  const Tensor& operator[](TensorId id) const { return tensors[id.index()]; }
};

/// Letters of every operand of `equation`: inputs, then outputs.
/// "bsi,io->bso" -> {"bsi", "io", "bso"}
std::vector<std::string> operand_letters(const std::string& equation);

/// Elements of the whole tensor.
std::int64_t elements(const Tensor& tensor);

/// The kernel that `op` is on a rank whose operands (inputs, then outputs) have these local shapes;
/// nothing for a view. `dtype` is that of the operator's main operand.
std::optional<Kernel> kernel_of(const Operator& op,
                                const std::vector<std::vector<std::int64_t>>& local_shapes,
                                const std::vector<std::vector<std::int64_t>>& whole_shapes,
                                DType dtype);

}  // namespace foreshard
