/// \file
/// Memory of a pipeline stage in closed form.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

#include "strategies/program/lower/lower.h"

namespace foreshard::search {

/// Passes whose activations a stage keeps at most while one of a chunk runs (that one included),
/// and how many of them are of its first and of its last chunk then.
struct KeptPasses {
  std::int64_t all = 0;
  std::int64_t first_chunk = 0;
  std::int64_t last_chunk = 0;
};

/// Per stage, per chunk, from the order that the schedule itself gives.
Result<std::vector<std::vector<KeptPasses>>> kept_passes(const Strategy& strategy);

/// Peak of one rank of `stage`.
Bytes peak_of_stage(const Strategy& strategy, const Model& model, const lower::LoweredModel& blocks,
                    std::int64_t stage, const std::vector<KeptPasses>& kept);

}  // namespace foreshard::search
