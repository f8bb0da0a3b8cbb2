/// \file
/// The ways to split one operator of a graph (R3.5), and what each costs: its kernels forward and
/// backward, the communication of its own backward operators, the reduction of the gradients of its
/// parameters, and memory. What lies between operators is priced elsewhere (tables.h).
///
/// The backward pass of a way is that of the operator alone, its operands lying as the way wants
/// them, made and distributed as for a whole graph (strategies/graph/backward.h, distribute.h).
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
  Signature signature{};  ///< Inputs as it needs them, outputs as it leaves them.
  /// By input: as its backward pass leaves the gradient; nothing where none is wanted.
  std::vector<std::optional<Attribute>> gradients{};
  Seconds forward{};    ///< Of a micro-batch.
  Seconds backward{};   ///< Likewise.
  Seconds reduction{};  ///< Of the gradients of its parameters, once a step.
  Bytes kept{};         ///< Of its outputs, from the forward to the backward pass.
};

/// What decides the cost of splits on one mesh.
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

  /// All ways, in the order of legal_splits(), but for those that leave summands which cannot be
  /// brought back. Operators that do the same share one list.
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
  std::set<TensorId> saved_;    ///< For the backward pass.
  std::map<std::string, std::vector<OperatorOption>> known_;
};

}  // namespace foreshard::search::internal
