/// \file
/// The disturbances of a study: one step, or many with different seeds.
#pragma once

#include "base/result.h"

#include "sim/simulate/simulate.h"
#include "sim/study/study.h"
#include "strategies/program/ir/program.h"

namespace foreshard::study {

/// sim::simulate under the study's disturbances. With several runs, the prediction is the run with
/// the median step among those that end (nearest rank), and its summary has the steps of all that
/// end. If nothing is random, one run stands for all.
/// \pre study.disturbances; `cluster` is cluster_of(study)
/// \return kInvalidInput, with a place, if disturbances do not fit the cluster; the errors of
///     sim::simulate.
Result<sim::Prediction> simulate_disturbed(const LoadedStudy& study, const ClusterView& cluster,
                                           const program::Program& program,
                                           const sim::SimulateOptions& options);

}  // namespace foreshard::study
