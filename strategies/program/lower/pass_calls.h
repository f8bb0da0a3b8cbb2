/// \file
/// The calls that a pass of the step plan consists of: its units one after another, the bodies of
/// loops as often as they run, and for each condition the branch that is taken.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "strategies/plan/step_plan.h"
#include "strategies/program/lower/calls.h"
#include "strategies/program/lower/exchanges.h"

namespace foreshard::lower {

/// One call of a pass.
struct PassCall {
  std::int32_t of = 0;                    ///< Block of the plan.
  const program::Block* tasks = nullptr;  ///< Tasks: a piece of the pass through that block.
  bool begins = true;                     ///< The pass through a unit begins with it.
  bool ends = true;                       ///< The pass through a unit ends with it.
  std::int32_t repeat = 1;                ///< program::Call::repeat.
  std::int32_t first_layer = 0;           ///< program::Call::first_layer.
  std::int32_t layer_step = 1;            ///< program::Call::layer_step.
  std::int32_t part = 0;                  ///< Index of the part, if the block is cut.
  std::vector<EarlierTask> after{};       ///< BlockPart::after.
};

/// The branches that conditions take: drawn in the forward pass, taken again in the backward pass.
class Branches {
 public:
  /// (micro-batch, unit, path of the condition in loops and conditions, iteration of these loops).
  using Place = std::tuple<std::int32_t, std::int32_t, std::string, std::int64_t>;

  explicit Branches(std::uint64_t seed) : random_(seed) {}

  /// Draws a branch: 0 with `probability`, else 1. `is_taken_again`: a backward pass will take it.
  std::size_t draw(Place place, double probability, bool is_taken_again);
  /// The branch that the forward pass drew, for its backward pass.
  std::size_t take(const Place& place) const;

 private:
  std::mt19937_64 random_;
  std::map<Place, std::size_t> taken_;
};

/// The calls of `pass`, in order. Consecutive units that share a block are one call that repeats
/// it, if the pass through it is a single block of the Program.
/// \pre forward passes come before backward passes of the same units and micro-batch.
std::vector<PassCall> calls_of(const plan::Action& pass, const plan::Parts& parts,
                               const PlannedBlocks& blocks, bool trains, Branches& branches);

/// block -> its parts, for blocks that were cut.
using BlockCuts = std::map<const program::Block*, std::vector<BlockPart>>;

/// The same calls, with blocks that exchange tokens cut into parts (cut_at_exchanges).
/// \param cuts  receives and holds the parts.
std::vector<PassCall> cut(const std::vector<PassCall>& calls, BlockCuts& cuts);

}  // namespace foreshard::lower
