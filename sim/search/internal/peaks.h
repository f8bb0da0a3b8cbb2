/// \file
/// What lives in memory at once on a rank of a pipeline stage, from its step plan: units whose
/// activations, gathered parameters and whole gradients are there while a pass runs (passes_of),
/// and how many of each block they are (loads_of). Blocks and sizes come later, so that all
/// strategies whose plans have the same form share what is found of it.
///
/// A buffer that another lane gives back (a gradient that is being reduced) counts until something
/// that the pass waits for says that it is gone (plan::Order). So do activations on their way to
/// the host; those that come back count from where they are asked for.
#pragma once

#include <algorithm>
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

/// How many units of each block there are before each unit of a model, and the block of each: what
/// tells strategies apart that recompute other layers.
struct Labels {
  std::vector<std::int32_t> block_of{};
  std::vector<BlockCounts> before{};  ///< One more than there are units.

  void add(std::int32_t block);
  BlockCounts counts(const plan::Run& units) const;
  std::int32_t block(std::int32_t unit) const { return block_of[static_cast<std::size_t>(unit)]; }
};
Labels labels_of(const plan::Parts& parts);

/// The axes over which gradients of a block are reduced, one bucket of a unit each; ascending.
std::vector<std::vector<Axis>> reduced_over(const std::vector<plan::ParameterGroup>& groups);

/// What is live while a pass runs, in units of each block.
struct Load {
  PassOf pass{};
  PassOf before{};  ///< The pass before it; none behind a wait for all that came before.
  /// Whether its last tasks may still run, off the compute stream: then its work and, backward,
  /// what it gives back are there too.
  bool trails = false;
  BlockCounts whole{};  ///< Gathered parameters.
  /// Whole gradients: of reduced_over(), by the block of their bucket.
  std::array<BlockCounts, kBucketsOfUnit> gradient{};
  BlockCounts kept{};  ///< Activations, to the end of the gradients of inputs.
  BlockCounts held{};  ///< What gradients of weights read, from there on.
  auto operator<=>(const Load&) const = default;
};

/// Neighbouring units of which something is live so many times.
struct LiveUnits {
  plan::Run units{};
  std::int32_t count = 0;
  auto operator<=>(const LiveUnits&) const = default;
};

/// A pass through one unit.
struct UnitPass {
  std::int32_t unit = -1;  ///< -1: none.
  Direction direction = Direction::kForward;
  plan::Part part = plan::Part::kWhole;
  auto operator<=>(const UnitPass&) const = default;
};
/// A pass, and what is live as it begins, in units.
struct PassForm {
  plan::Run units{};
  Direction direction = Direction::kForward;
  plan::Part part = plan::Part::kWhole;
  std::uint8_t takes = 0;
  std::uint8_t gives_back = 0;
  UnitPass before{};    ///< The last one before it; none behind a wait for all.
  bool trails = false;  ///< Whether its last tasks may still run.
  /// Gathered parameters and whole gradients, by the first unit of their bucket and the latter's
  /// place in reduced_over(): before the gathers beside the pass begin and, if there are any, then.
  struct Beside {
    std::vector<std::int32_t> whole{};
    std::vector<std::array<std::int32_t, 3>> gradient{};  ///< Unit, place, how many.
    auto operator<=>(const Beside&) const = default;
  };
  std::vector<Beside> beside{};
  std::vector<LiveUnits> kept{};
  std::vector<LiveUnits> held{};
  auto operator<=>(const PassForm&) const = default;
};

/// The passes of stages that hold like units.
struct StagePasses {
  std::vector<PassForm> all{};  ///< Distinct; none of which another has as much of everything.

  void add(const StagePasses& others);
};

/// Those of a role.
/// Not modelled: room that the optimizer's exchanges take behind all passes.
/// \param first_like  of each chunk the first unit of one that holds like units: its units stand for
///     those of the chunk.
StagePasses passes_of(const plan::StepPlan& plan, const plan::Role& role,
                      const std::vector<std::int32_t>& first_like, bool blocking_launches);

/// The loads of such stages of which no other has more of everything.
std::vector<Load> loads_of(const StagePasses& passes, const Labels& labels);

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

/// What is live off the compute stream of a pass whose last tasks may still run.
/// \param bytes  of its block.
inline Bytes bytes_trailing(const PassOf& pass, const BlockBytes& bytes) {
  if (!bytes.trails[pass.form()]) return {};
  const Bytes work = bytes.work[pass.form()];
  if (pass.part == plan::Part::kWeight) return work + bytes.held;
  return pass.direction == Direction::kBackward ? work + bytes.kept : work;
}
/// What is live while a pass runs, of one load or the largest of several.
struct LiveBytes {
  Bytes most;  ///< All that the load says.
  /// What of that is there however late the host is: all but the last tasks of the pass before it
  /// and what is gathered or reduced for other passes.
  Bytes least;

  void include(const LiveBytes& other) {
    most = std::max(most, other.most);
    least = std::max(least, other.least);
  }
};
LiveBytes live_of(const Load& load, const std::array<BlockBytes, kBlocks>& bytes);
/// Whether the load counts what the pass before leaves, or is gathered or reduced for others.
bool rests_on_others(const Load& load);

}  // namespace foreshard::search
