/// \file
/// The disturbances of a study: one step, or many with different seeds.
#pragma once

#include "base/result.h"

#include "sim/simulate/simulate.h"
#include "sim/study/study.h"
#include "strategies/program/ir/program.h"

namespace foreshard::study {

/// As sim::simulate, under the study's disturbances. Of several runs, the prediction is that of the
/// one with the median step among those that end (nearest rank), with the steps of all in its
/// summary. Without anything random, one run stands for all.
/// \pre study.disturbances; `cluster` is cluster_of(study)
/// \return kInvalidInput, with a place, where disturbances do not fit the cluster; what
///     sim::simulate returns.
Result<sim::Prediction> simulate_disturbed(const LoadedStudy& study, const ClusterView& cluster,
                                           const program::Program& program,
                                           const sim::SimulateOptions& options);

}  // namespace foreshard::study
