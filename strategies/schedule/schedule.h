/// \file
/// Pipeline schedules as data: in which order a stage runs its forward and backward passes. A
/// schedule is a name and a function; everything else (transfers, gradients, memory) follows from
/// the order elsewhere.
///
/// With p stages and v chunks per stage the model is cut into p v pieces; piece c p + s is chunk c
/// of stage s, so a micro-batch visits the stages in turn and wraps round v times.
///
/// To add a schedule: its .cc, its declaration in schedules.h, one line in schedule.cc.
/// schedule_contract_test.cc then holds it to what all must obey.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/program/ir/kernel.h"

namespace foreshard::schedule {

/// One pass of one micro-batch through one chunk of the stage.
struct Slot {
  Direction direction = Direction::kForward;
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
  auto operator<=>(const Slot&) const = default;
};

struct Shape {
  std::int32_t stage = 0;          ///< In [0, stages).
  std::int32_t stages = 1;         ///< p >= 1.
  std::int32_t chunks = 1;         ///< v >= 1, per stage.
  std::int32_t micro_batches = 1;  ///< m >= 1, per step.
};

struct Schedule {
  std::string_view name;     ///< As in strategy files: "1f1b".
  std::string_view summary;  ///< One line for `foreshard catalog`.
  /// The stage's passes in the order it runs them: each (chunk, micro-batch) once forward and,
  /// later, once backward.
  /// \return kInvalidInput, with a remedy, for a shape that the schedule does not do.
  Result<std::vector<Slot>> (*order)(const Shape& shape);
};

/// All schedules, by name.
std::span<const Schedule> schedules();
/// \return nullptr if none has that name.
const Schedule* find_schedule(std::string_view name);

/// The order of the schedule `name`.
/// \return kInvalidInput also for an unknown name (lists them).
Result<std::vector<Slot>> order(std::string_view name, const Shape& shape);

}  // namespace foreshard::schedule
