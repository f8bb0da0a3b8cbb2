/// \file
/// What sources print (times, rates, utilisations) as the time of one step.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "evidence/training_row.h"

#include "strategies/graph/model.h"

namespace foreshard::accuracy {

/// What a source counts as the arithmetic of a step.
enum class FlopsConvention : std::uint8_t {
  kModel,       ///< One forward and backward pass, attention scores counted whole.
  kHardware,    ///< And one more forward pass of the layers, for recomputation.
  kCausalHalf,  ///< As kModel, but attention scores halved for the causal mask.
};

/// One line of the table of conventions: rows with this metric of sources whose name contains
/// `source` (all, if empty).
struct Convention {
  std::string_view metric;
  std::string_view source;
  FlopsConvention flops;
  std::string_view citation;
};
/// The first line that applies; nullptr for a metric that does not count arithmetic.
const Convention* convention_of(const TrainingRow& row);

/// Of one step of `samples` sequences. For GPT models kHardware is
/// 96 B s l h^2 (1 + s / 6h + V / 16lh) and kModel 72 B s l h^2 (1 + s / 6h + V / 12lh).
Flops step_flops(const Model& model, double samples, FlopsConvention convention);

/// The time of a step that the row states, directly or by a rate:
///
///     tokens/s(/GPU):  B s / rate       samples/s(/GPU):  B / rate
///     TFLOP/s/GPU:     flops / (rate GPUs)
///     MFU:             flops / (percent / 100 x peak GPUs), the peak as the unit names it
///
/// \pre the row states gbs.
/// \return kUnsupported for metrics of something else than a whole step, and units that are not
///     known.
Result<Seconds> measured_step(const TrainingRow& row, const Model& model, std::int64_t gpus);

/// The `derived step_time=` that a row's notes may carry, to check the conversion by.
std::optional<Seconds> noted_step(const TrainingRow& row);

}  // namespace foreshard::accuracy
