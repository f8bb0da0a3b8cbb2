/// \file
/// Unequal shares of the batch: where devices have several speeds, data-parallel ranks on faster
/// devices take more micro-batches than the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"

#include "sim/search/device_subset.h"
#include "sim/study/study.h"
#include "strategies/parallelism/strategy.h"
#include "topology/cluster_view.h"

namespace foreshard::search {

/// Shares of `ranks` data-parallel ranks that differ by at most `unit` micro-batches, one per group
/// of neighbouring ranks as in Strategy::batch_shares; the first ranks take more. Empty where all
/// shares are equal, or where there is no such division that gives each rank a unit.
/// \param unit  a divisor of every rank's number of micro-batches.
std::vector<std::int64_t> even_shares(std::int64_t micro_batches, std::int64_t ranks,
                                      std::int64_t unit);

/// How fast each device of a place would train the study's model alone, in the order of the place,
/// from kernels and their launches. Not modelled: ranks that share a layer have other kernels, and
/// communicate.
std::vector<FlopsPerSecond> rates_of(const study::LoadedStudy& study, const ClusterView& cluster,
                                     const DeviceSubset& place);

/// The rate of each data-parallel rank's slowest device, in the order of the data-parallel ranks.
/// \param rates  one per device, in the order of the ranks; further ones are not used.
std::vector<FlopsPerSecond> rates_of_data_ranks(const Strategy& strategy,
                                                std::span<const FlopsPerSecond> rates);

/// The strategy with up to `most` divisions of its batch between data-parallel ranks of several
/// rates: those that end soonest by these rates, in this order:
///
///     end = max_k m_k / r_k,   sum_k n_k m_k = micro-batches of the batch,   m_k >= 1 whole
///
/// for n_k ranks of rate r_k. Ranks of equal rate take equal shares, and the slowest ranks take
/// less than in an equal division. Empty where all ranks have one rate, or where the strategy
/// allows no unequal shares. The given strategy may itself have shares, for a batch that does not
/// divide evenly.
/// Not tried: divisions beyond the kMostDivisionsTried that would end soonest, even if the schedule
/// cannot do those.
/// \param rates  of the data-parallel ranks.
/// \param devices  that ranks may run on.
std::vector<Strategy> with_batch_shares(const Strategy& strategy, const Model& model,
                                        const std::vector<FlopsPerSecond>& rates,
                                        std::int64_t devices, std::size_t most);
inline constexpr std::size_t kMostDivisionsTried = 16;

/// The strategy with the division that ends soonest by these rates if ranks of equal rate may take
/// unequal shares as well: one micro-batch after another goes to the rank that would finish it
/// soonest. Nothing where all ranks have one rate, or where the strategy allows no such shares.
std::optional<Strategy> with_soonest_shares(const Strategy& strategy, const Model& model,
                                            const std::vector<FlopsPerSecond>& rates,
                                            std::int64_t devices);

/// When the last data-parallel rank ends, in micro-batch times of the slowest rank. A rank's time
/// has its own micro-batches and those that fill its pipeline.
double end_of_shares(const Strategy& strategy, const std::vector<FlopsPerSecond>& rates);

}  // namespace foreshard::search
