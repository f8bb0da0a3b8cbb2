/// \file
/// The ways to split one operator of a graph (R3.5), and the costs of each: its kernels forward and
/// backward, the communication between its own backward operators, the reduction of its parameters'
/// gradients, and memory. Conversions between operators are priced elsewhere (tables.h).
///
/// The backward pass of an option is made for the operator alone, with its operands in the layouts
/// that the option needs, and distributed as for a whole graph (strategies/graph/backward.h,
/// distribute.h).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "sim/search/graph/internal/conversion_times.h"
#include "strategies/cost/cost_model.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/graph.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search::internal {

struct OperatorOption {
  Splits splits{};
  /// Layouts of the inputs that it needs, and of the outputs that it leaves.
  Signature signature{};
  /// input -> layout in which its backward pass leaves the gradient; nothing: no gradient is
  /// wanted.
  std::vector<std::optional<Attribute>> gradients{};
  Seconds forward{};    ///< Forward kernels of a micro-batch.
  Seconds backward{};   ///< Backward kernels and communication of a micro-batch.
  Seconds reduction{};  ///< Reduction of its parameters' gradients, once per step.
  Bytes kept{};         ///< Outputs that are kept from the forward to the backward pass.
};

/// All that the costs of splits on one mesh depend on.
struct Ground {
  const Graph& graph;
  const Strategy& strategy;
  std::vector<MeshAxis> mesh;  ///< Axes that may split operators; others have one rank.
  const CostModel& cost;
  std::vector<DeviceTypeId> devices;  ///< Types of the ranks' devices, each once.
};

class OperatorOptions {
 public:
  OperatorOptions(const Ground& ground, ConversionTimes& conversions);

  /// All ways to split an operator, in the order of legal_splits(). Equivalent operators share one
  /// list.
  const std::vector<OperatorOption>& of(std::size_t op);

  bool is_trained(TensorId tensor) const { return trained_.contains(tensor); }

 private:
  std::vector<OperatorOption> made(const Operator& op);
  OperatorOption option(const Operator& op, Splits splits);
  void add_backward(const Operator& op, OperatorOption& option);
  Seconds kernels(const ShardedGraph& sharded) const;
  std::string key_of(const Operator& op) const;

  const Ground& ground_;
  ConversionTimes& conversions_;
  std::set<TensorId> trained_;  ///< Activations with a gradient.
  std::set<TensorId> read_;     ///< Tensors with a reader, and outputs of the graph.
  std::set<TensorId> saved_;    ///< Tensors that are kept for the backward pass.
  std::map<std::string, std::vector<OperatorOption>> known_;
};

}  // namespace foreshard::search::internal
