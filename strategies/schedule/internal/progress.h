/// \file
/// The progress of a pipeline: the passes that have run, and the time from which another may run.
/// The walk of a table (walk.h) and the placement of weight gradients (fill.h) both use it.
#pragma once

#include <optional>
#include <vector>

#include "strategies/schedule/schedule.h"

namespace foreshard::schedule {

class Progress {
 public:
  Progress(const Shape& shape, Placement placement);

  /// The time at which the inputs of the stage's slot are there; empty if some of them have yet to
  /// be computed.
  std::optional<double> ready(std::int32_t stage, const Slot& slot) const;
  /// Time that the slot takes.
  double duration(const Slot& slot) const;
  /// Records that the slot has run and ended at `end`.
  void finish(std::int32_t stage, const Slot& slot, double end);

 private:
  std::size_t index(std::int64_t piece, std::int32_t micro_batch) const;

  Shape shape_;
  Placement placement_;
  // End of the forward pass (below: of the input gradients) per piece and micro-batch; < 0: not
  // done.
  std::vector<double> forward_;
  std::vector<double> backward_;
};

}  // namespace foreshard::schedule
