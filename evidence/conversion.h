/// \file
/// Converts what sources print (times, rates, utilisations) to the time of one step. Called by
/// training.cc for the measured value of each row.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "evidence/training_row.h"

#include "strategies/graph/model.h"

namespace foreshard::accuracy {

/// The FLOPs that a source counts for a step.
enum class FlopsConvention : std::uint8_t {
  kModel,       ///< One forward and backward pass; attention scores in full.
  kHardware,    ///< kModel plus one more forward pass of the layers, for recomputation.
  kCausalHalf,  ///< kModel with attention scores halved for the causal mask.
};

/// One line of the table of conventions.
struct Convention {
  std::string_view metric;    ///< Metric of the rows to which the line applies.
  std::string_view source;    ///< Part of the name of their source; empty: any source.
  FlopsConvention flops;      ///< The FLOPs that such rows count.
  std::string_view citation;  ///< Document that states the convention.
};
/// The first line that applies to the row; nullptr for a metric that does not count FLOPs.
const Convention* convention_of(const TrainingRow& row);

/// FLOPs of one step of `samples` sequences. For GPT models, with batch B, sequence s, layers l,
/// hidden size h and vocabulary V, kHardware is 96 B s l h^2 (1 + s / 6h + V / 16lh) and kModel is
/// 72 B s l h^2 (1 + s / 6h + V / 12lh).
Flops step_flops(const Model& model, double samples, FlopsConvention convention);

/// The measured time of a step, which the row states directly or as a rate:
///
///     tokens/s(/GPU):  B s / rate       samples/s(/GPU):  B / rate
///     TFLOP/s/GPU:     flops / (rate GPUs)
///     MFU:             flops / (percent / 100 x peak GPUs), with the peak that the unit names
///
/// \pre The row states gbs.
/// \return kUnsupported for a metric that is not of a whole step, and for an unknown unit.
Result<Seconds> measured_step(const TrainingRow& row, const Model& model, std::int64_t gpus);

/// The step time after `derived step_time=` in the row's notes, in seconds, against which tests
/// check the conversion; nothing if the notes have none.
std::optional<Seconds> noted_step(const TrainingRow& row);

}  // namespace foreshard::accuracy
