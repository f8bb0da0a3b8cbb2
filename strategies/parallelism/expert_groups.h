/// \file
/// The ranks that hold the routed experts of a layer: groups among the flattened tensor-, context-
/// and data-parallel ranks (strategies/graph/mesh_axes.h). A group may end within an axis.
#pragma once

#include <cstdint>
#include <string>

#include "strategies/parallelism/strategy.h"

namespace foreshard {

/// Ranks that share one expert.
std::int64_t expert_tensor_ways(const Strategy& strategy);

/// Ranks that together hold all experts of a layer once; they are neighbours.
std::int64_t expert_ranks(const Strategy& strategy);

/// Data-parallel ranks among expert_ranks().
std::int64_t expert_data_ranks(const Strategy& strategy);

/// " (each whole)", " (each split 2 ways)": for experts that are split otherwise than the other
/// parameters.
std::string words_of_experts(const Strategy& strategy);

}  // namespace foreshard
