/// \file
/// Unequal shares of the batch: on devices of several speeds, the data-parallel ranks on the faster
/// ones take more micro-batches than the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"

#include "sim/search/place.h"
#include "sim/study/study.h"
#include "strategies/parallelism/strategy.h"
#include "topology/cluster_view.h"

namespace foreshard::search {

/// The shares of `ranks` data-parallel ranks that differ by `unit` micro-batches at most, by groups
/// of neighbours (Strategy::batch_shares): the first ranks take more. Empty where all take as many,
/// or there is no such division in which each rank takes a unit.
/// \param unit  that divides the micro-batches of each rank.
std::vector<std::int64_t> even_shares(std::int64_t micro_batches, std::int64_t ranks,
                                      std::int64_t unit);

/// How fast each device of a place trains the study's model alone, in the order of the place, as
/// far as kernels and their launches tell. Not modelled: that ranks which share a layer have other
/// kernels, and communicate.
std::vector<FlopsPerSecond> rates_of(const study::LoadedStudy& study, const ClusterView& cluster,
                                     const Place& place);

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
/// where all ranks have one rate, or the strategy allows no unequal shares. Ranks of one rate take
/// as many; the strategy itself may have shares for a batch that does not divide evenly.
/// Not tried: of divisions that the schedule does not do, more than the kMostDivisionsTried that
/// would end the soonest.
/// \param rates  of the data-parallel ranks.
/// \param devices  that ranks may run on.
std::vector<Strategy> with_batch_shares(const Strategy& strategy, const Model& model,
                                        const std::vector<FlopsPerSecond>& rates,
                                        std::int64_t devices, std::size_t most);
inline constexpr std::size_t kMostDivisionsTried = 16;

/// The strategy with the division that ends the soonest by these rates, where ranks of one rate may
/// take unequal shares as well: micro-batch after micro-batch goes to the rank that would have done
/// it the soonest. Nothing where all ranks have one rate, or the strategy allows no such shares.
std::optional<Strategy> with_soonest_shares(const Strategy& strategy, const Model& model,
                                            const std::vector<FlopsPerSecond>& rates,
                                            std::int64_t devices);

/// When the last of data-parallel ranks of those rates ends, in micro-batches of the slowest: its
/// own, and those that fill its pipeline.
double end_of_shares(const Strategy& strategy, const std::vector<FlopsPerSecond>& rates);

}  // namespace foreshard::search
