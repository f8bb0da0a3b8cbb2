/// \file
/// Whether a search's first choice is one for this machine or for the numbers in its files: the
/// best ones are ranked again with other numbers.
///
/// **Drawn parameters.** In each draw, the times of matrix products, of attention, of memory-bound
/// kernels (each by type of device) and of communication are multiplied by factors whose 10th and
/// 90th percentile are those of the catalogue's parameter errors (sim/study/interval.h) for how
/// sure each parameter is: log-normal, with the logarithms' half width as 1.2816 sigma, and
/// independent of each other. Factors are around 1: what all strategies share does not change
/// their order.
///
/// **A slow device.** The first device that ranks run on has 80 % of its speed.
///
/// A strategy's step is then its simulated one times estimate with those numbers / estimate
/// without. Seeded: the same draws everywhere.
///
/// Not modelled: of unequal shares of the batch, those who take less (both estimates are as if all
/// ranks took the most); errors of rates inside and between nodes apart from one another; that a
/// schedule or a collective would be chosen anew.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"

#include "sim/study/study.h"
#include "strategies/cost/cost_model.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

/// Of a normal distribution: standard deviations from its middle to its 10 % or 90 % quantile.
inline constexpr double kDeviationsToTenth = 1.2816;

/// One of those that are ranked.
struct Contender {
  Strategy strategy;
  std::vector<std::int32_t> devices;  ///< Of its ranks, in their order.
  Seconds step;                       ///< Simulated.
};

struct Robustness {
  std::int64_t draws = 0;
  std::vector<std::int64_t> firsts;  ///< In how many of them each contender is the fastest.
  std::int64_t beside_slow = 0;      ///< The contender that is the fastest with a slow device.

  /// Whether the first contender is the fastest in most draws.
  bool holds() const { return firsts.empty() || 2 * firsts.front() >= draws; }
};

inline constexpr std::int64_t kDraws = 16;
inline constexpr double kSlowSpeed = 0.8;

/// \param threads  that draw; the result does not depend on their number.
/// \return the errors of build_cluster; no draws where there are less than two contenders.
Result<Robustness> robustness_of(const study::LoadedStudy& study, const ClusterView& cluster,
                                 const std::vector<Contender>& contenders,
                                 std::int64_t threads = 1);

}  // namespace foreshard::search
