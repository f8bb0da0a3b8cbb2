/// \file
/// The ranks that hold the routed experts of a layer: groups among the flattened tensor-, context-
/// and data-parallel ones (strategies/graph/mesh_axes.h), wherever these groups end.
#pragma once

#include <cstdint>
#include <string>

#include "strategies/parallelism/strategy.h"

namespace foreshard {

/// Ranks that share one expert.
std::int64_t expert_tensor_ways(const Strategy& strategy);

/// Ranks that hold the experts of a layer once: neighbours.
std::int64_t expert_ranks(const Strategy& strategy);

/// Data-parallel ranks among these.
std::int64_t expert_data_ranks(const Strategy& strategy);

/// " (each whole)", " (each split 2 ways)": of experts that are not split as all else is.
std::string words_of_experts(const Strategy& strategy);

}  // namespace foreshard
