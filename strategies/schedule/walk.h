/// \file
/// Evaluates a table before anything runs: whether all stages reach their end, how long they take
/// with equal chunks, and how many micro-batches they have in flight.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strategies/schedule/schedule.h"

namespace foreshard::schedule {

/// The progress of a pipeline: the passes that have run, and the time from which another may run.
class Progress {
 public:
  Progress(const PipelineShape& shape, StagePlacement placement);

  /// The time at which the inputs of the stage's slot are there; empty if some of them have yet to
  /// be computed.
  std::optional<double> ready(std::int32_t stage, const Slot& slot) const;
  /// Time that the slot takes.
  double duration(const Slot& slot) const;
  /// Records that the slot has run and ended at `end`.
  void finish(std::int32_t stage, const Slot& slot, double end);

 private:
  std::size_t index(std::int64_t piece, std::int32_t micro_batch) const;

  PipelineShape shape_;
  StagePlacement placement_;
  // End of the forward pass (below: of the input gradients) per piece and micro-batch; < 0: not
  // done.
  std::vector<double> forward_;
  std::vector<double> backward_;
};

/// The time from the start of a stage's first slot to the end of its last.
struct Span {
  double begin = 0;
  double end = 0;
};

/// Runs the table, each slot as early as its stage and its inputs allow. One span per stage.
/// \pre fault_in(table, shape, placement) finds none
std::vector<Span> walk(const Table& table, const PipelineShape& shape, StagePlacement placement);

/// The most micro-batches (times chunks) that a stage has in flight: each from its forward pass to
/// its whole backward pass or its weight gradients.
std::int32_t most_in_flight(const std::vector<Slot>& slots);

/// A fault of a table and its stage.
struct TableFault {
  std::int32_t stage = 0;
  std::string message{};
  std::string help{};
};
/// A table is sound if
///  1. it has as many stages as `shape`, and only chunks and micro-batches of `shape`;
///  2. each stage runs each chunk of each micro-batch forward once, then backward once: whole, or
///     input gradients and, later, weight gradients; a slot that overlaps another obeys
///     Slot::beside;
///  3. no stage deadlocks, neither for an input nor for a transfer queued behind others. The
///     transfers of one direction (in a V, of one direction and chunk) leave a stage in the order
///     of its slots, and arrive in the order of the receiver's slots.
/// \return the first fault; empty if there is none.
std::optional<TableFault> fault_in(const Table& table, const PipelineShape& shape,
                                   StagePlacement placement);

/// "F3", "I0"; with several chunks the piece of the model comes first: "5F3".
std::string to_text(const Slot& slot, const PipelineShape& shape, StagePlacement placement,
                    std::int32_t stage);

}  // namespace foreshard::schedule
