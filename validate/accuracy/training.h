/// \file
/// A measured training step beside its simulation.
#pragma once

#include <filesystem>
#include <vector>

#include "sim/study/interval.h"
#include "strategies/comm/parameters.h"
#include "validate/accuracy/outcome.h"
#include "validate/accuracy/training_row.h"

namespace foreshard::accuracy {

/// Simulates the row with the fluid engine. A measured step did fit in memory: where the prediction
/// finds that it does not, the row stays kOk and `reason` explains. `metric` peak_memory compares
/// the peak of the fullest device (unit GiB), or of rank 0, which logs, where notes say so; metrics
/// of parts.h compare a part of a step (unit ms).
Outcome evaluate(const TrainingRow& row, const comm::Parameters& communication,
                 const study::ParameterErrors& errors,
                 const std::vector<std::filesystem::path>& catalogue);

}  // namespace foreshard::accuracy
