/// \file
/// What each of several ways to compute the same takes, fairly: in turns, so that drifts fall on
/// all alike; after some tens of milliseconds of the same work, since an idle GPU lowers its
/// clocks; and one behind another without a pause, as in a step.
#pragma once

#include <cstddef>
#include <cuda_runtime_api.h>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace foreshard::replay::gpu {

/// \param run  puts way i on the stream, on operands that it has not used lately; false where that
///     way does not run.
/// \return medians, by way; nothing for one that does not run. kIo if CUDA fails.
Result<std::vector<std::optional<Seconds>>> time_proposals(
    std::size_t count, const std::function<bool(std::size_t)>& run, cudaStream_t stream);

}  // namespace foreshard::replay::gpu
