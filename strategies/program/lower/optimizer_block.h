/// \file
/// What ends a training step: the parameters are updated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/graph/attribute.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/ir/program.h"

namespace foreshard::lower {

/// The update of `count` parameters of one device. Where the framework clips gradients, their norm
/// comes first: each device sums the squares of its `count` gradients, the ranks along the mesh
/// axes `spread`, which hold different gradients, add up their sums, and the host reads the result.
/// Of `quantized` weights copies are made for the products of the next step, once for all its
/// micro-batches.
program::Block optimizer_block(std::string name, const Strategy& strategy,
                               const std::vector<MeshAxis>& mesh, const std::vector<Axis>& spread,
                               std::int64_t count, std::int64_t quantized);

}  // namespace foreshard::lower
