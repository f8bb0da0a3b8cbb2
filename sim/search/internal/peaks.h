/// \file
/// What lives in memory at once on a rank of a pipeline stage, from its step plan: counts of blocks
/// whose activations, gathered parameters and whole gradients are there while a pass runs. The
/// sizes come later, so that all strategies whose plans have the same form share the counts.
///
/// A buffer that another lane gives back (a gradient that is being reduced) counts until something
/// that the pass waits for says that it is gone (plan::Order).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

#include "base/units.h"

#include "strategies/plan/step_plan.h"

namespace foreshard::search {

inline constexpr std::size_t kBlocks = 8;         ///< Of a plan, at most.
inline constexpr std::size_t kBucketsOfUnit = 3;  ///< At most: groups of other axes each.
using BlockCounts = std::array<std::int32_t, kBlocks>;

/// A pass through a unit of a block.
struct PassOf {
  std::int32_t block = -1;  ///< -1: none.
  Direction direction = Direction::kForward;
  plan::Part part = plan::Part::kWhole;
  auto operator<=>(const PassOf&) const = default;

  /// Forward, whole backward, gradients of inputs, gradients of weights.
  std::size_t form() const {
    return direction == Direction::kForward ? 0 : 1 + static_cast<std::size_t>(part);
  }
};
inline constexpr std::size_t kForms = 4;  ///< Of a pass.

/// The axes over which gradients of a block are reduced, one bucket of a unit each; ascending.
std::vector<std::vector<Axis>> reduced_over(const std::vector<plan::ParameterGroup>& groups);

/// What is live while a pass runs, in units of each block.
struct Load {
  PassOf pass{};
  /// The pass before it, if its last tasks may still run, off the compute stream: then its work
  /// and, backward, what it gives back are there too.
  PassOf trailing{};
  BlockCounts whole{};  ///< Gathered parameters.
  /// Whole gradients: of reduced_over(), by the block of their bucket.
  std::array<BlockCounts, kBucketsOfUnit> gradient{};
  BlockCounts kept{};  ///< Activations, to the end of the gradients of inputs.
  BlockCounts held{};  ///< What gradients of weights read, from there on.
  auto operator<=>(const Load&) const = default;
};

/// The loads of a role of which no other has more of everything.
/// Not modelled: room that the optimizer's exchanges take behind all passes.
/// \param waits_for_conversions  units wait for the conversion that ends the unit before, of the same
///     chunk and micro-batch (lower::PlannedBlocks).
std::vector<Load> loads_of(const plan::StepPlan& plan, const plan::Role& role,
                           bool blocking_launches, bool waits_for_conversions = false);

/// Those of which no other has more of everything.
std::vector<Load> largest(const std::vector<Load>& loads);

/// Of one unit of each block, on one rank.
struct BlockBytes {
  Bytes kept{};
  Bytes held{};
  Bytes whole{};
  std::array<Bytes, kBucketsOfUnit> gradient{};  ///< Of each of reduced_over().
  std::array<Bytes, kForms> work{};              ///< By PassOf::form().
  /// Whether the pass ends with a task that is not on the compute stream.
  std::array<bool, kForms> trails{};
};

/// The largest of the loads.
Bytes peak(const std::vector<Load>& loads, const std::array<BlockBytes, kBlocks>& bytes);

}  // namespace foreshard::search
