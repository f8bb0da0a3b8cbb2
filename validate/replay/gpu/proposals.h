/// \file
/// Compares the times of several ways to compute the same result. The ways run in turns, so that
/// drifts affect all of them equally; after some tens of milliseconds of the same work, because an
/// idle GPU lowers its clocks; and back to back, as in a step.
#pragma once

#include <cstddef>
#include <cuda_runtime_api.h>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace foreshard::replay::gpu {

/// \param run  issues way i to the stream, with operands that were not used recently; returns false
///     if that way does not run.
/// \return way -> median time; nothing for a way that does not run. kIo if CUDA fails.
Result<std::vector<std::optional<Seconds>>> time_proposals(
    std::size_t count, const std::function<bool(std::size_t)>& run, cudaStream_t stream);

}  // namespace foreshard::replay::gpu
