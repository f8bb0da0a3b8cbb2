/// \file
/// Measured times of a part of a step: one pass through one layer, or through the layers of a
/// pipeline stage, of one micro-batch, by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "evidence/setting.h"
#include "evidence/training_row.h"

#include "sim/simulate/prediction.h"
#include "topology/cluster_config.h"
#include "validate/tables/table.h"

namespace foreshard::accuracy {

enum class PartOfStep : std::uint8_t {
  kForward,
  kBackward,
  kInputGradients,  ///< The backward pass in two parts: this one,
  kWeightGradients  ///< and that one.
};

/// "layer_forward", "stage_T_W"; nothing of other metrics.
std::optional<PartOfStep> part_named(std::string_view metric);

/// Whether the row measures the branch of experts, without attention, norm and residual.
bool is_of_experts_alone(const TrainingRow& row);

/// Whether the row's devices were measured for too short a time to get as warm as in training
/// ("5 warm-up + 20 measured iterations").
bool is_short_run(const TrainingRow& row);
/// The cluster with devices whose clocks do not fall under load.
ClusterConfig at_full_clocks(ClusterConfig config);

/// The part of the row's step on all devices at once, each of which does the same: what it adds to
/// the pass before it, during which the host has launched ahead. With its interval.
/// \pre part_named(row.metric) == part
Result<sim::Prediction> predict_part(const TrainingRow& row, PartOfStep part,
                                     const Setting& setting, const Context& context);

}  // namespace foreshard::accuracy
