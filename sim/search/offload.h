/// \file
/// Offloading for strategies that need more memory than their devices have: what goes to the hosts'
/// memory is the least that makes the strategy fit.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/search/estimate.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

/// The strategy offloaded in up to four ways: its optimizer states stay on the device; they are on
/// the host and fetched for the step; they are on the host, whose CPU takes the step; and the same
/// with the shards of the parameters on the host too (ZeRO 3). Each way that the framework can do
/// also offloads the activations of as few layers per stage as make it fit. Ways that do not fit
/// even with the activations of all layers are left out.
/// Not tried: other numbers of layers; activations on the host where the backward pass runs in two
/// parts (strategies/parallelism/strategy.h says what is not modelled).
/// \param devices  that ranks may run on.
/// \param left  margin, as a part of the memory that the strategy needs, which has to stay free.
/// \pre `strategy` offloads nothing and has no faults on `devices`.
std::vector<Strategy> least_offloads(const Strategy& strategy, const Model& model,
                                     std::int64_t devices, Estimator& estimator, double left = 0);

/// Whether least_offloads() finds any strategy.
bool fits_with_hosts(const Strategy& strategy, const Model& model, std::int64_t devices,
                     Estimator& estimator, double left = 0);

}  // namespace foreshard::search
