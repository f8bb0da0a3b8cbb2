/// \file
/// How far a pipeline has come: which pass may run next, from when on, and what has run. The walk
/// of a table (walk.h) and the planner of weight gradients (fill.h) both stand on it.
#pragma once

#include <optional>
#include <vector>

#include "strategies/schedule/schedule.h"

namespace foreshard::schedule {

class Progress {
 public:
  Progress(const Shape& shape, Placement placement);

  /// When what the slot of `stage` reads is there; nothing if some of it has yet to run.
  std::optional<double> ready(std::int32_t stage, const Slot& slot) const;
  /// How long it takes.
  double duration(const Slot& slot) const;
  /// The slot has run until `end`.
  void finish(std::int32_t stage, const Slot& slot, double end);

 private:
  std::size_t index(std::int64_t piece, std::int32_t micro_batch) const;

  Shape shape_;
  Placement placement_;
  // When the forward pass, and the input gradients, of a piece and micro-batch are done; < 0: not.
  std::vector<double> forward_;
  std::vector<double> backward_;
};

}  // namespace foreshard::schedule
