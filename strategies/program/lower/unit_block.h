/// \file
/// The passes through one unit - a block of a transformer, or a unit of a general graph - as tasks,
/// and what stays in memory between them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "strategies/graph/distribute.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/lower/block.h"
#include "strategies/program/lower/emitter.h"
#include "strategies/reshard/within_mesh.h"

namespace foreshard::lower {

/// A unit, sharded, with its backward pass, and how its passes become tasks.
struct UnitPasses {
  const ShardedGraph& forward;
  const ShardedGraph* backward = nullptr;  ///< Null: there is no backward pass.
  std::set<TensorId> seeds{};              ///< UnitGradients::seeds.
  Recomputation recomputation{};
  /// The tasks that recompute are the first ones of the backward pass; else they are pieces of
  /// their own before it, and all of the forward pass is run again.
  bool recomputes_inside = false;
  /// Its backward pass can reduce gradients in buckets of the framework's size as they become ready
  /// (plan::ParameterGroup::reduced_inside); else all reductions are left to the plan.
  bool fills_buckets = false;
  Overlap forward_overlap{};
  Overlap backward_overlap{};
  LaunchCost launching{};
  bool placeholders_kept = false;                        ///< BackwardWork::placeholders_kept.
  reshard::MeshPlanner planner = reshard::steps_within;  ///< Planner of its conversions.
};

/// Axes over which gradients are partial -> the number of elements of their parameters.
using PartialElements = std::map<std::vector<Axis>, std::int64_t>;

/// The passes, named after the unit's graph. Parameters are left out.
/// \param reduced  receives what the backward pass reduces itself.
/// Not modelled: what a graph keeps outside its loops and conditions if it has no operator there.
LoweredBlock lower_unit(const UnitPasses& unit, const Strategy& strategy, PartialElements& reduced);

/// The axes of more than one rank over which a tensor with this layout is partial.
std::vector<Axis> partial_axes(const Attribute& attribute, const std::vector<MeshAxis>& mesh);

/// parameter -> the tensor of the backward graph in which its gradient is complete.
std::map<TensorId, TensorId> gradients_in(const Graph& backward);

/// The operator of the backward graph that runs the bodies of this one backward; nullptr: none.
const Operator* backward_of(const Graph* backward, const Operator& op);

}  // namespace foreshard::lower
