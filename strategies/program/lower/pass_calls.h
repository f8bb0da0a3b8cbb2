/// \file
/// The calls that a pass of the step plan consists of: its units one after another, those of their
/// loops as often as they run, and of their conditions the branch that is taken.
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
  std::int32_t of = 0;                    ///< The block of the plan.
  const program::Block* tasks = nullptr;  ///< Its tasks: a piece of the pass through that block.
  bool begins = true;                     ///< The pass through a unit begins with it.
  bool ends = true;                       ///< The pass through a unit ends with it.
  std::int32_t repeat = 1;                ///< As in program::Call.
  std::int32_t first_layer = 0;           ///< As in program::Call.
  std::int32_t layer_step = 1;            ///< As in program::Call.
  std::int32_t part = 0;                  ///< Of a block that is cut: which part of it.
  std::vector<EarlierTask> after{};       ///< As in BlockPart.
};

/// The branches that conditions take: drawn in the forward pass, taken again in the backward pass.
class Branches {
 public:
  /// Micro-batch, unit, the loops and conditions around, the iteration of these loops.
  using Place = std::tuple<std::int32_t, std::int32_t, std::string, std::int64_t>;

  explicit Branches(std::uint64_t seed) : random_(seed) {}

  /// 0 with `probability`, else 1.
  std::size_t draw(Place place, double probability, bool is_taken_again);
  /// What was drawn for a backward pass.
  std::size_t take(const Place& place) const;

 private:
  std::mt19937_64 random_;
  std::map<Place, std::size_t> taken_;
};

/// The calls of `pass`, in order. Consecutive units of one block whose pass is a block alone are
/// one call that repeats it.
/// \pre forward passes come before backward passes of the same units and micro-batch.
std::vector<PassCall> calls_of(const plan::Action& pass, const plan::Parts& parts,
                               const PlannedBlocks& blocks, bool trains, Branches& branches);

/// The parts of blocks that were cut.
using BlockCuts = std::map<const program::Block*, std::vector<BlockPart>>;

/// The same calls, with those blocks cut that exchange tokens (cut_at_exchanges).
/// \param cuts  holds the parts; they are added to it.
std::vector<PassCall> cut(const std::vector<PassCall>& calls, BlockCuts& cuts);

}  // namespace foreshard::lower
