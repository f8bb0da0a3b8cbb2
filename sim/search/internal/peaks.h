/// \file
/// The buffers that are live at once on a rank of a pipeline stage, from its step plan: the units
/// whose activations, gathered parameters and whole gradients are live while a pass runs
/// (passes_of), and how many units of each block these are (live_sets_of). Blocks and sizes are
/// filled in later, so that all strategies whose plans have the same form share the results.
///
/// A buffer that another lane frees (a gradient that is being reduced) counts as live until the
/// pass waits for something that shows that it is freed (plan::HappensBefore). So do activations on
/// their way to the host; activations that are fetched count from where the fetch is issued.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <vector>

#include "base/units.h"

#include "strategies/plan/step_plan.h"

namespace foreshard::search {

inline constexpr std::size_t kBlocks = 8;  ///< The most blocks of a plan.
/// The most buckets of a unit, each for groups over other axes.
inline constexpr std::size_t kBucketsOfUnit = 3;
using BlockCounts = std::array<std::int32_t, kBlocks>;

/// A pass through a unit of a block.
struct BlockPass {
  std::int32_t block = -1;  ///< -1: none.
  Direction direction = Direction::kForward;
  plan::PassPart part = plan::PassPart::kWhole;
  auto operator<=>(const BlockPass&) const = default;

  /// Forward, whole backward, gradients of inputs, gradients of weights.
  std::size_t form() const {
    return direction == Direction::kForward ? 0 : 1 + static_cast<std::size_t>(part);
  }
};
inline constexpr std::size_t kForms = 4;  ///< The number of forms of a pass.

/// The block of each unit of a model, and how many units of each block come before it. Strategies
/// that recompute different layers have different labels.
struct Labels {
  std::vector<std::int32_t> block_of{};
  std::vector<BlockCounts> before{};  ///< One entry more than units: block -> units before.

  void add(std::int32_t block);
  BlockCounts counts(const plan::UnitRange& units) const;
  std::int32_t block(std::int32_t unit) const { return block_of[static_cast<std::size_t>(unit)]; }
};
Labels labels_of(const plan::PlannedModel& parts);

/// The sets of axes over which gradients of a block are reduced, ascending; each unit has one
/// bucket per set.
std::vector<std::vector<Axis>> reduced_over(const std::vector<plan::ParameterGroup>& groups);

/// What is live while a pass runs, as numbers of units of each block.
struct LiveSet {
  BlockPass pass{};
  BlockPass before{};  ///< The pass before it; none after a wait for everything before.
  /// Whether the last tasks of `before` may still run, off the compute stream. Then the memory that
  /// it works with is live too, and, if it is backward, what it gives back.
  bool has_tail = false;
  BlockCounts whole{};  ///< Units with gathered parameters.
  /// Units with whole gradients: place in reduced_over() -> block of the bucket -> units.
  std::array<BlockCounts, kBucketsOfUnit> gradient{};
  /// Units whose activations are kept, until the end of the pass for gradients of inputs.
  BlockCounts kept{};
  BlockCounts held{};  ///< Units that hold what gradients of weights read, from then on.
  auto operator<=>(const LiveSet&) const = default;
};

/// Neighbouring units for each of which something is live `count` times.
struct LiveUnits {
  plan::UnitRange units{};
  std::int32_t count = 0;
  auto operator<=>(const LiveUnits&) const = default;
};

/// A pass through one unit.
struct UnitPass {
  std::int32_t unit = -1;  ///< -1: none.
  Direction direction = Direction::kForward;
  plan::PassPart part = plan::PassPart::kWhole;
  auto operator<=>(const UnitPass&) const = default;
};
/// A pass, and the units of which something is live as it begins.
struct PassForm {
  plan::UnitRange units{};
  Direction direction = Direction::kForward;
  plan::PassPart part = plan::PassPart::kWhole;
  std::uint8_t takes = 0;
  std::uint8_t gives_back = 0;
  UnitPass before{};      ///< The last pass of a unit before it; none after a wait for everything.
  bool has_tail = false;  ///< Whether the last tasks of `before` may still run.
  /// Gathered parameters and whole gradients that are live beside the pass. One entry for the time
  /// before gathers for later passes begin and, if there are such gathers, one for afterwards.
  struct LiveParameters {
    std::vector<std::int32_t> whole{};
    /// First unit of the bucket, its place in reduced_over(), and how many gradients are live.
    std::vector<std::array<std::int32_t, 3>> gradient{};
    auto operator<=>(const LiveParameters&) const = default;
  };
  std::vector<LiveParameters> beside{};
  std::vector<LiveUnits> kept{};
  std::vector<LiveUnits> held{};
  auto operator<=>(const PassForm&) const = default;
};

/// The passes of equivalent stages.
struct StagePasses {
  /// Distinct passes, without those that another one covers (the same pass with at least as much of
  /// everything).
  std::vector<PassForm> all{};

  void add(const StagePasses& others);
};

/// The passes of a role.
/// Not modelled: memory of the optimizer's exchanges after all passes.
/// \param first_like  chunk -> first unit of its representative, an equivalent chunk whose units
///     stand for the units of the chunk.
StagePasses passes_of(const plan::StepPlan& plan, const plan::Role& role,
                      const std::vector<std::int32_t>& first_like, bool blocking_launches);

/// The live sets of such stages, without those that another live set covers.
std::vector<LiveSet> live_sets_of(const StagePasses& passes, const Labels& labels);

/// Bytes of one unit of a block, on one rank.
struct BlockBytes {
  Bytes kept{};
  Bytes held{};
  Bytes whole{};
  std::array<Bytes, kBucketsOfUnit> gradient{};  ///< Index: place in reduced_over().
  std::array<Bytes, kForms> work{};              ///< Index: BlockPass::form().
  /// Whether the pass ends with a task that is not on the compute stream.
  std::array<bool, kForms> has_tail{};
};

/// The bytes that a pass keeps live off the compute stream while its last tasks may still run.
/// \param bytes  bytes of the pass's block.
inline Bytes tail_bytes(const BlockPass& pass, const BlockBytes& bytes) {
  if (!bytes.has_tail[pass.form()]) return {};
  const Bytes work = bytes.work[pass.form()];
  if (pass.part == plan::PassPart::kWeight) return work + bytes.held;
  return pass.direction == Direction::kBackward ? work + bytes.kept : work;
}
/// Bytes that are live while a pass runs, for one live set or the largest of several.
struct LiveBytes {
  Bytes most;  ///< All bytes of the live set.
  /// The part that is live however late the host is: all but the last tasks of the pass before and
  /// what is gathered or reduced for other passes.
  Bytes least;

  void include(const LiveBytes& other) {
    most = std::max(most, other.most);
    least = std::max(least, other.least);
  }
};
LiveBytes live_of(const LiveSet& live_set, const std::array<BlockBytes, kBlocks>& bytes);
/// Whether the live set has buffers that the pass before leaves, or that are gathered or reduced
/// for other passes.
bool depends_on_others(const LiveSet& live_set);

}  // namespace foreshard::search
