/// \file
/// Unequal shares of the batch: on devices of several speeds, the data-parallel ranks on the faster
/// ones take more micro-batches than the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

#include "sim/search/place.h"
#include "sim/study/study.h"
#include "strategies/parallelism/strategy.h"
#include "topology/cluster_view.h"

namespace foreshard::search {

/// How fast each device of a place multiplies matrices of that type, in the order of the place.
std::vector<FlopsPerSecond> rates_of(const Place& place, const ClusterView& cluster, DType dtype);

/// That of each data-parallel rank's slowest device, in the order of the ranks.
/// \param rates  of the devices of all ranks, in their order; what is behind them is not used.
std::vector<FlopsPerSecond> rates_of_data_ranks(const Strategy& strategy,
                                                std::span<const FlopsPerSecond> rates);

/// The strategy with the `most` divisions of its batch between data-parallel ranks of several rates
/// that end the soonest by these rates, the soonest first:
///
///     end = max_k m_k / r_k,   sum_k n_k m_k = micro-batches of the batch,   m_k >= 1 whole
///
/// for n_k ranks of rate r_k. The slowest ranks take less than they do where all take as many. None
/// where all ranks have one rate, or the strategy allows no unequal shares.
/// Not tried: ranks of one rate that take unequal shares; of divisions that the schedule does not
/// do, more than the kMostDivisionsTried that would end the soonest.
/// \param rates  of the data-parallel ranks.
/// \param devices  that ranks may run on.
std::vector<Strategy> with_batch_shares(const Strategy& strategy, const Model& model,
                                        const std::vector<FlopsPerSecond>& rates,
                                        std::int64_t devices, std::size_t most);
inline constexpr std::size_t kMostDivisionsTried = 16;

}  // namespace foreshard::search
