/// \file
/// Predicts rows that measure only a part of a step: one pass of one micro-batch through one layer,
/// or through the layers of a pipeline stage, by itself. Called by training.cc for the metrics that
/// part_named() knows.
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
  kInputGradients,  ///< First part of a split backward pass.
  kWeightGradients  ///< Second part of a split backward pass.
};

/// The part that a metric such as "layer_forward" or "stage_T_W" measures; nothing for metrics of
/// anything else.
std::optional<PartOfStep> part_named(std::string_view metric);

/// Whether the row measures the expert branch of a layer only, without attention, norm and
/// residual.
bool is_of_experts_alone(const TrainingRow& row);

/// Whether the measurement was too short for the devices to get as warm as in training (notes such
/// as "5 warm-up + 20 measured iterations").
bool is_short_run(const TrainingRow& row);
/// The cluster, with devices whose clocks do not fall under load.
ClusterConfig at_full_clocks(ClusterConfig config);

/// The part's time, with its interval. All devices run the same pass at once. Two programs are
/// simulated, the preceding pass alone and both passes; `step` is the difference, so that the host
/// has launched ahead as in training. The breakdown covers both passes.
/// \pre part_named(row.metric) == part
/// \return kUnsupported for a strategy that the model forbids, and for a pass that is not one block
///     of tasks; errors of the study and of the simulation.
Result<sim::Prediction> predict_part(const TrainingRow& row, PartOfStep part,
                                     const Setting& setting, const Context& context);

}  // namespace foreshard::accuracy
