/// \file
/// Pipeline schedules as data: a table of the passes of each stage, in the order in which it runs
/// them. A schedule is a name and a function that makes its table; everything else (transfers,
/// gradients, memory) follows from the order elsewhere.
///
/// With p stages and v chunks per stage the model is cut into p v pieces. A placement says which
/// piece is chunk c of stage s.
///
/// A backward pass runs whole, or in two parts: the gradients of its inputs, which the stage before
/// waits for, and the gradients of its weights, which nobody waits for before the end of the step
/// and which can therefore fill bubbles.
///
///     stage 0: F0 F1 I0 W0 I1 W1      F: forward, B: whole backward pass,
///     stage 1: F0 I0 F1 I1 W0 W1      I: input gradients, W: weight gradients
///
/// A backward pass can run beside the forward pass of another micro-batch: each computes while the
/// other communicates.
///
/// To add a schedule: its .cc, its declaration in schedules.h, one line in schedule.cc.
/// schedule_contract_test.cc then holds it to what all must obey.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/program/ir/kernel.h"

namespace foreshard::schedule {

/// What a slot runs of a backward pass. A forward pass is always whole.
enum class Part : std::uint8_t {
  kWhole,
  kInput,   ///< Gradients of what the chunk reads: what the piece before waits for.
  kWeight,  ///< Gradients of its parameters; behind kInput.
};

/// One pass, or a part of it, of one micro-batch through one chunk of the stage.
struct Slot {
  Direction direction = Direction::kForward;
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
  Part part = Part::kWhole;
  /// A backward pass runs beside the slot before it, a forward pass of another chunk or
  /// micro-batch: both have what they read before either of them ends.
  bool beside = false;
  auto operator<=>(const Slot&) const = default;
};
/// Per stage: its slots in the order in which it runs them.
using Table = std::vector<std::vector<Slot>>;

/// Which piece of the model is chunk c of stage s of p.
enum class Placement : std::uint8_t {
  kWrap,  ///< c p + s: a micro-batch visits the stages in turn and wraps round v times.
  kV,     ///< s and, for c = 1, 2p-1-s: it goes there and comes back. Two chunks.
};
constexpr std::int64_t piece_of(Placement placement, std::int64_t stages, std::int64_t stage,
                                std::int64_t chunk) {
  const bool comes_back = placement == Placement::kV && chunk % 2 == 1;
  return chunk * stages + (comes_back ? stages - 1 - stage : stage);
}

/// The stage that holds a piece.
constexpr std::int64_t stage_of(Placement placement, std::int64_t stages, std::int64_t piece) {
  const bool comes_back = placement == Placement::kV && piece / stages % 2 == 1;
  return comes_back ? stages - 1 - piece % stages : piece % stages;
}

/// How long passes of equal chunks take, in any unit: what schedules go by that fill bubbles.
struct PassTimes {
  double forward = 1;
  double input = 1;     ///< Gradients of inputs.
  double weight = 1;    ///< Gradients of weights.
  double transfer = 0;  ///< From one stage to the next.
};

struct Shape {
  std::int32_t stages = 1;             ///< p >= 1.
  std::int32_t chunks = 1;             ///< v >= 1, per stage.
  std::int32_t micro_batches = 1;      ///< m >= 1, per step.
  PassTimes times{};                   ///< Of schedules that go_by_times.
  bool pairs = false;                  ///< Passes run beside others, where the schedule pairs them.
  std::vector<std::string> actions{};  ///< Of schedule "custom": actions.h.
};

inline constexpr std::int32_t kAnyNumber = std::numeric_limits<std::int32_t>::max();

struct Schedule {
  std::string_view name;     ///< As in strategy files: "1f1b".
  std::string_view summary;  ///< One line for `foreshard catalog schedules`.
  /// Each (chunk, micro-batch) runs once forward and, later, once backward: whole or in two parts.
  /// \return kInvalidInput, with a remedy, for a shape that the schedule does not do.
  Result<Table> (*table)(const Shape& shape);
  std::int32_t fewest_chunks = 1;
  std::int32_t most_chunks = 1;
  std::int32_t fewest_stages = 1;
  Placement placement = Placement::kWrap;
  bool splits = false;         ///< Backward passes run in two parts.
  bool goes_by_times = false;  ///< Shape::times decides where weight gradients run.
  /// Shape::pairs is for it, with stages up to so many; 0: it has no passes that run side by side.
  std::int32_t pairs_up_to = 0;
  /// Runs where passes wait for transfers too (PipelineTransfers::kBlocking). The transfers of
  /// other schedules lie ready beside the passes, as their runtimes post them ahead of use
  /// (sail-sg/zero-bubble-pipeline-parallelism, zerobubble/runtime.py;
  /// torch/distributed/pipelining, _PipelineScheduleRuntime).
  bool may_block = false;
};

/// The schedule whose actions a user lists: its placement and whether it splits backward passes
/// follow from them (actions.h).
inline constexpr std::string_view kCustom = "custom";

/// All schedules, by name.
std::span<const Schedule> schedules();
/// \return nullptr if none has that name.
const Schedule* find_schedule(std::string_view name);

/// The table of the schedule `name`.
/// \return kInvalidInput also for an unknown name (lists them).
Result<Table> table_of(std::string_view name, const Shape& shape);

}  // namespace foreshard::schedule
