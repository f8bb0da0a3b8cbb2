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
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/cost/cost_model.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/graph.h"
#include "strategies/graph/layout.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/reshard/plan.h"
#include "strategies/reshard/price.h"

namespace foreshard::search::internal {

// Times of conversions of tensors within a mesh, in closed form (strategies/reshard/price.h): each
// is the time of the fastest series of primitives that the reshard planner finds on the cluster,
// on idle links.

/// Caches its answers; use one object per thread.
class ConversionTimes {
 public:
  /// Position i of the mesh is rank i of `placement`. The cost model must outlive it.
  ConversionTimes(const CostModel& cost, reshard::Placement placement, std::vector<MeshAxis> mesh);

  /// Infinite where ranks have no route.
  Seconds operator()(const reshard::TensorSpec& tensor, const Attribute& from, const Attribute& to);

 private:
  using Key = std::tuple<DType, Shape, Attribute, Attribute>;
  struct PricedTensor {
    PricedTensor(reshard::TensorSpec spec, const CostModel& cost,
                 const reshard::Placement& placement)
        : tensor(std::move(spec)), price(tensor, cost, placement) {}
    reshard::TensorSpec tensor;
    reshard::StepPricer price;
  };
  Seconds priced(const reshard::TensorSpec& tensor, const Attribute& from, const Attribute& to);

  const CostModel& cost_;
  reshard::Placement placement_;
  ProcessMesh mesh_;
  std::map<std::pair<DType, Shape>, std::unique_ptr<PricedTensor>> tensors_;
  std::map<Key, Seconds> known_;
};

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
struct CostContext {
  const Graph& graph;
  const Strategy& strategy;
  std::vector<MeshAxis> mesh;  ///< Axes that may split operators; others have one rank.
  const CostModel& cost;
  std::vector<DeviceTypeId> devices;  ///< Types of the ranks' devices, each once.
};

class OperatorOptions {
 public:
  OperatorOptions(const CostContext& context, ConversionTimes& conversions);

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

  const CostContext& context_;
  ConversionTimes& conversions_;
  std::set<TensorId> trained_;  ///< Activations with a gradient.
  std::set<TensorId> read_;     ///< Tensors with a reader, and outputs of the graph.
  std::set<TensorId> saved_;    ///< Tensors that are kept for the backward pass.
  std::map<std::string, std::vector<OperatorOption>> known_;
};

}  // namespace foreshard::search::internal
