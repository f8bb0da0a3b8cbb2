/// \file
/// What of a strategy that needs more memory than its devices have goes to the memory of their
/// hosts: the least that makes it fit.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/search/estimate.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

/// The strategy with its optimizer states where they are, fetched for the step, kept on the host
/// whose CPU takes the step, and there with the shards of its parameters (ZeRO 3): each of these
/// that the framework can do, with the activations of the fewest layers of each stage on the host
/// by which it fits. Those of which not even all layers fit are left out.
/// Not tried: other numbers of layers; activations on the host where the backward pass runs in two
/// parts (strategies/parallelism/strategy.h says what is not modelled).
/// \param devices  that ranks may run on.
/// \param left  the part of its need that shall be left of the memory.
/// \pre `strategy` offloads nothing and has no faults on them.
std::vector<Strategy> least_offloads(const Strategy& strategy, const Model& model,
                                     std::int64_t devices, Estimator& estimator, double left = 0);

/// Whether least_offloads() finds any.
bool fits_with_hosts(const Strategy& strategy, const Model& model, std::int64_t devices,
                     Estimator& estimator, double left = 0);

}  // namespace foreshard::search
