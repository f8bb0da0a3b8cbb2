/// \file
/// Whether a search's first choice holds for the machine or only for the numbers in the study's
/// files: the best strategies are ranked again with other numbers.
///
/// **Drawn parameters.** In each draw, the times of matrix products, of attention, of memory-bound
/// kernels (one factor per type of device for each) and of communication are multiplied by random
/// factors. The factors are log-normal around 1 and independent of each other. Their 10th and 90th
/// percentiles come from the catalogue's parameter errors (sim/study/interval.h) for the evidence
/// of each parameter: half the width of the logarithms is 1.2816 sigma. A shift that all strategies
/// share would not change their order.
///
/// **A slow device.** The first device that ranks run on has 80 % of its speed.
///
/// A strategy's step is then its simulated step times the estimate with those numbers, divided by
/// the estimate without. Draws are seeded: they are the same everywhere.
///
/// Not modelled: with unequal shares of the batch, ranks that take less than the largest share
/// (both estimates assume that all take it); separate errors of rates inside nodes and between
/// them; a new choice of schedule or of collective algorithms.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/record/forward.h"
#include "base/result.h"

#include "sim/study/study.h"
#include "strategies/cost/cost_model.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::search {

/// Standard deviations from the mean of a normal distribution to its 10 % or 90 % quantile.
inline constexpr double kDeviationsToTenth = 1.2816;

/// A strategy that is ranked again.
struct Contender {
  Strategy strategy;
  std::vector<std::int32_t> devices;  ///< Devices of its ranks, in their order.
  Seconds step;                       ///< Simulated step.
};

struct Robustness {
  std::int64_t draws = 0;
  std::vector<std::int64_t> firsts;  ///< One per contender: in how many draws it is the fastest.
  std::int64_t beside_slow = 0;      ///< Index of the fastest contender with a slow device.

  /// Whether the first contender is the fastest in most draws.
  bool holds() const { return firsts.empty() || 2 * firsts.front() >= draws; }
};
const record::Record<Robustness>& record_of(const Robustness*);

inline constexpr std::int64_t kDraws = 16;
inline constexpr double kSlowSpeed = 0.8;

/// \param threads  number of threads; the result does not depend on it.
/// \return the errors of build_cluster; no draws where there are fewer than two contenders.
Result<Robustness> robustness_of(const study::LoadedStudy& study, const ClusterView& cluster,
                                 const std::vector<Contender>& contenders,
                                 std::int64_t threads = 1);

}  // namespace foreshard::search
