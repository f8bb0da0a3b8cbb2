/// \file
/// Pipeline schedules as data: a table with the passes of each stage in the order in which the
/// stage runs them. A schedule is a name and a function that builds its table; everything else
/// (transfers, gradients, memory) is derived from that order elsewhere.
///
/// With p stages and v chunks per stage the model is cut into p v pieces. A placement maps chunk c
/// of stage s to a piece.
///
/// A backward pass runs whole or in two parts: the input gradients, for which the previous stage
/// waits, and the weight gradients, for which nothing waits before the end of the step, so that
/// they can fill bubbles.
///
///     stage 0: F0 F1 I0 W0 I1 W1      F: forward, B: whole backward pass,
///     stage 1: F0 I0 F1 I1 W0 W1      I: input gradients, W: weight gradients
///
/// A backward pass can run beside the forward pass of another micro-batch: each computes while the
/// other communicates.
///
/// To add a schedule, write its .cc, its declaration in schedules.h and its entry in schedule.cc.
/// schedule_contract_test.cc then checks the rules that all schedules obey.
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

/// The part of a backward pass that a slot runs. A forward pass is always whole.
enum class PassPart : std::uint8_t {
  kWhole,
  kInput,   ///< Gradients of the chunk's input, for which the previous piece waits.
  kWeight,  ///< Gradients of the chunk's parameters; runs after kInput.
};

/// One pass, or a part of it, of one micro-batch through one chunk of the stage.
struct Slot {
  Direction direction = Direction::kForward;
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
  PassPart part = PassPart::kWhole;
  /// This backward pass overlaps the previous slot, a forward pass of another chunk or micro-batch.
  /// The inputs of both are there before either of them ends.
  bool beside = false;
  auto operator<=>(const Slot&) const = default;
};
/// stage -> its slots, in the order in which it runs them.
using Table = std::vector<std::vector<Slot>>;

/// The piece of the model that is chunk c of stage s of p.
enum class StagePlacement : std::uint8_t {
  kWrap,  ///< Piece c p + s: a micro-batch visits the stages in turn and wraps round v times.
  kV,  ///< Piece s and, for c = 1, 2p-1-s: a micro-batch goes down the stages and back. Two chunks.
};
constexpr std::int64_t piece_of(StagePlacement placement, std::int64_t stages, std::int64_t stage,
                                std::int64_t chunk) {
  const bool comes_back = placement == StagePlacement::kV && chunk % 2 == 1;
  return chunk * stages + (comes_back ? stages - 1 - stage : stage);
}

/// The stage that holds a piece.
constexpr std::int64_t stage_of(StagePlacement placement, std::int64_t stages, std::int64_t piece) {
  const bool comes_back = placement == StagePlacement::kV && piece / stages % 2 == 1;
  return comes_back ? stages - 1 - piece % stages : piece % stages;
}

/// Times of passes through equal chunks, in any unit. Schedules that fill bubbles use them.
struct PassTimes {
  double forward = 1;
  double input = 1;     ///< Gradients of inputs.
  double weight = 1;    ///< Gradients of weights.
  double transfer = 0;  ///< Time of a transfer to the next stage.
};

struct PipelineShape {
  std::int32_t stages = 1;             ///< p >= 1.
  std::int32_t chunks = 1;             ///< v >= 1, per stage.
  std::int32_t micro_batches = 1;      ///< m >= 1, per step.
  PassTimes times{};                   ///< Read by schedules that go_by_times.
  bool pairs = false;                  ///< Passes overlap where the schedule pairs them.
  std::vector<std::string> actions{};  ///< The actions of schedule "custom" (actions.h).
};

inline constexpr std::int32_t kAnyNumber = std::numeric_limits<std::int32_t>::max();

struct Schedule {
  std::string_view name;     ///< The name in strategy files: "1f1b".
  std::string_view summary;  ///< One line for `foreshard catalog schedules`.
  /// Builds the table: each (chunk, micro-batch) runs once forward and, later, once backward, whole
  /// or in two parts.
  /// \return kInvalidInput, with a remedy, for a shape that the schedule does not support.
  Result<Table> (*table)(const PipelineShape& shape);
  std::int32_t fewest_chunks = 1;
  std::int32_t most_chunks = 1;
  std::int32_t fewest_stages = 1;
  StagePlacement placement = StagePlacement::kWrap;
  bool splits = false;         ///< Backward passes run in two parts.
  bool goes_by_times = false;  ///< PipelineShape::times decides where weight gradients run.
  /// Most stages with which PipelineShape::pairs is allowed; 0: the schedule has no passes that run
  /// side by side.
  std::int32_t pairs_up_to = 0;
  /// The schedule also works where passes wait for transfers (PipelineTransfers::kBlocking). The
  /// transfers of other schedules never block passes, since their runtimes post them ahead of use
  /// (sail-sg/zero-bubble-pipeline-parallelism, zerobubble/runtime.py;
  /// torch/distributed/pipelining, _PipelineScheduleRuntime).
  bool may_block = false;
};

/// The schedule whose actions a user lists. Its placement, and whether it splits backward passes,
/// follow from the actions (actions.h).
inline constexpr std::string_view kCustom = "custom";

/// All schedules, ordered by name.
std::span<const Schedule> schedules();
/// \return nullptr if none has that name.
const Schedule* find_schedule(std::string_view name);

/// The table of the schedule `name`.
/// \return kInvalidInput also for an unknown name (the message lists the known ones).
Result<Table> table_of(std::string_view name, const PipelineShape& shape);

}  // namespace foreshard::schedule
