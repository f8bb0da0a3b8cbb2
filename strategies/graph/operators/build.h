/// \file
/// Builds graphs of operators from the table (table.cc), shapes inferred:
///
///     Graph graph{.name = "mlp"};
///     const TensorId x = add_input(graph, "x", {DType::kBf16, {32, 1024}});
///     const TensorId w = add_parameter(graph, "w", {DType::kBf16, {1024, 4096}});
///     const auto y = add_operator(graph, {.type = "matmul", .name = "up", .inputs = {x, w}});
///     if (!y) return y.error();   // (*y)[0] is the product
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/graph/graph.h"
#include "strategies/graph/operators/definition.h"

namespace foreshard {

/// Adds an activation that comes from outside (and notes it in Graph::inputs), or a parameter.
TensorId add_input(Graph& graph, std::string name, TensorType type);
TensorId add_parameter(Graph& graph, std::string name, TensorType type);

struct OperatorSpec {
  std::string type{};  ///< Name in the table.
  std::string name{};
  std::vector<TensorId> inputs{};
  Settings settings{};                      ///< Settings that are left out get their defaults.
  std::vector<Graph> bodies{};              ///< Bodies of a loop or condition.
  std::vector<std::string> output_names{};  ///< Default: `name`, then `name`.1, ...
};

/// Appends the operator and its output tensors.
/// \return kInvalidInput, naming the operator, for an unknown type, unknown, missing or ill-typed
///     settings, a wrong number of inputs, and shapes that do not go together.
Result<std::vector<TensorId>> add_operator(Graph& graph, OperatorSpec spec);

/// The same for an operator with one output.
Result<TensorId> add_single(Graph& graph, OperatorSpec spec);

/// Output types and rule of an operator, without adding it.
Result<Inferred> infer_operator(const Graph& graph, const OperatorSpec& spec);

/// The kernels of `op` on a rank whose operands (inputs, then outputs) have these local shapes, in
/// order; none for a view. Bodies are not entered.
std::vector<Kernel> kernels_of(const Graph& graph, const Operator& op,
                               const std::vector<std::vector<std::int64_t>>& local_shapes);

/// Whether `op` has no kernel, and its outputs no memory of their own (OperatorDefinition::view).
bool is_view(const Operator& op);

/// Arithmetic of all operators on whole shapes: a loop's body counts as often as it runs, the
/// branches of a condition by their probabilities.
Flops flops_of(const Graph& graph);

/// Elements of all parameters, including parameters of bodies (a loop whose iterations have their
/// own parameters counts as often as it runs).
std::int64_t parameter_elements(const Graph& graph);

/// How often body `body` runs on average: the count of a loop, the probability of a condition's
/// branch.
double body_weight(const Operator& op, std::size_t body);

}  // namespace foreshard
