/// \file
/// The definition of an operator of the table. To add one: write its definition in the file of its
/// family (or a new one), declare it in internal/families.h, and add a line to the table in
/// table.cc; the contract test (tests/strategies/graph/operators_contract_test.cc) then checks it
/// against the rules for all operators.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/graph/graph.h"
#include "strategies/graph/rule.h"

namespace foreshard {

class Gradients;

struct TensorType {
  DType dtype = DType::kBf16;
  std::vector<std::int64_t> shape{};
  bool operator==(const TensorType&) const = default;
};

/// One use of an operator. Kernels are computed from a Call with the shapes of one rank.
struct Call {
  std::vector<TensorType> inputs{};
  std::vector<TensorType> outputs{};
  Settings settings{};                 ///< Complete: every setting of the definition has a value.
  bool accumulates = false;            ///< Adds to an fp32 gradient (Operator::accumulates).
  std::vector<const Graph*> bodies{};  ///< Bodies of a loop or condition.
};

struct Inferred {
  std::vector<TensorType> outputs{};
  Rule rule{};
};

struct SettingDefinition {
  std::string_view name;
  SettingValue fallback;  ///< Default; its type is the setting's type.
  bool required = false;
  std::string_view doc;
  std::vector<std::string_view> words{};  ///< Legal values of a text; empty: any.
};

struct OperatorDefinition {
  static constexpr std::size_t kMany = std::numeric_limits<std::size_t>::max();

  std::string_view name{};
  std::string_view doc{};
  std::string_view inputs{};   ///< "x, weight[, bias]"
  std::string_view outputs{};  ///< "y"
  std::size_t least_inputs = 1;
  std::size_t most_inputs = 1;
  std::vector<SettingDefinition> settings{};
  /// No kernel: the outputs share the input's bytes, or another operator counts the work.
  bool view = false;
  bool loss = false;  ///< The backward pass starts here, without a gradient of the outputs.
  /// The last output overwrites the first input if types agree. If the first input is a parameter,
  /// the operator runs even if nothing reads the output.
  bool in_place = false;
  std::size_t bodies = 0;  ///< Number of sub-graphs.

  /// Output types and sharding rule, or kInvalidInput with what is wrong with inputs or settings
  /// (the operator's name is put before the message).
  Result<Inferred> (*infer)(const Call& whole) = nullptr;
  /// Kernels of one rank; null for a view.
  /// \param whole  the same call with logical shapes.
  std::vector<Kernel> (*kernels)(const Call& local, const Call& whole) = nullptr;
  /// Adds the operators of the backward pass; null if no gradient flows back through the operator.
  void (*gradient)(Gradients& gradients) = nullptr;
};

/// Sorted by name.
std::span<const OperatorDefinition> operator_definitions();
/// \return nullptr if there is none.
const OperatorDefinition* find_operator(std::string_view name);

/// "unknown operator 'matmull'; did you mean 'matmul'? See `foreshard catalog operators`".
std::string unknown_operator(std::string_view name);

/// The interface of an operator's gradient function to the backward graph under construction, in
/// which the tensors of the forward graph keep their ids.
class Gradients {
 public:
  virtual ~Gradients() = default;

  virtual const Operator& op() const = 0;  ///< The forward operator.
  virtual const Tensor& tensor(TensorId id) const = 0;
  /// Gradient of output `index`; invalid if nothing flows back into it.
  virtual TensorId of_output(std::size_t index) const = 0;
  /// Adds an operator of the table, named after the forward one and `part`.
  /// \pre its types and shapes can be inferred.
  virtual std::vector<TensorId> add(std::string_view type, std::string_view part,
                                    std::vector<TensorId> inputs, Settings settings = {}) = 0;
  /// The same for an operator with bodies.
  virtual std::vector<TensorId> add_with(std::string_view type, std::string_view part,
                                         std::vector<TensorId> inputs, Settings settings,
                                         std::vector<Graph> bodies) = 0;
  /// Body `index` of the forward operator.
  virtual const Graph& body(std::size_t index) const = 0;
  /// The backward graph of a body. Its inputs are the gradients of all floating-point outputs, its
  /// outputs the gradients of all floating-point inputs.
  virtual Graph backward_of(const Graph& body) const = 0;
  /// Adds `gradient`, a summand of the gradient of input `index` with the shape of that input.
  virtual void give(std::size_t index, TensorId gradient) = 0;

  /// Gradients of all outputs; zeros for outputs into which nothing flows back.
  std::vector<TensorId> of_outputs_or_zero();

  TensorId input(std::size_t index) const { return op().inputs[index]; }
  TensorId output(std::size_t index) const { return op().outputs[index]; }
  /// Whether input `index` exists, can have a gradient (a floating-point tensor), and its gradient
  /// is needed.
  virtual bool wants(std::size_t index) const;
  const std::vector<std::int64_t>& shape(TensorId id) const { return tensor(id).shape; }
};

}  // namespace foreshard
