/// \file
/// Measurements of single kernels and single communications in a replay, gathered from all
/// instances of all ranks: one sample per distinct kernel, one per distinct collective.
///
/// A kernel's time is what an instance takes on average over the repeats: steps are sums, and sums
/// have means. From three quantiles it is 0.3 x 10th + 0.4 x 50th + 0.3 x 90th percentile. A
/// collective's is the time from when its last member reached it until its last member was done
/// (measure::TaskTimes::lasted). Files without that tell medians of each member: of the last to
/// come its own time, and from its finish to the last one (medians of differences where there are
/// some: differences of medians add what steps drift by). Those during which a member also computed
/// are not taken: the kernels beside them stretch them.
///
/// The interval of a median is its notch, median +- 1.57 x (75th - 25th percentile) / sqrt(n),
/// which covers about 95 %. Instances beyond 5 scaled median absolute deviations, and 10 %, of the
/// median are outliers: they are named, and left out of the percentiles.
///
/// Source: Hurst, Brown, Swanson, "Swanson's 30-40-30 rule", AAPG Bulletin 84(12), 2000; McGill,
/// Tukey, Larsen, "Variations of box plots", The American Statistician 32(1), 1978; Hampel, "The
/// influence curve and its role in robust estimation", JASA 69, 1974.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/program/ir/program.h"
#include "validate/measurement/measurement.h"

namespace foreshard::calibrate {

/// Standard deviations of a normal distribution per median absolute deviation.
inline constexpr double kNormalMad = 1.4826;

/// A Program and what its replay measured. They belong together: fingerprints are alike.
struct MeasuredRun {
  program::Program program;
  measure::Measurement measurement;
};

struct Spread {
  Seconds median{};
  Seconds low{};  ///< 95 % interval of the median.
  Seconds high{};
  std::int64_t count = 0;     ///< Instances, without outliers.
  std::int64_t outliers = 0;  ///< Instances left out.
};
/// \pre !times.empty()
Spread spread_of(std::vector<Seconds> times);

struct KernelSample {
  Kernel kernel;
  std::string provider;  ///< Whose it is (measure::Providers).
  Spread time;
};

struct CollectiveSample {
  program::CollectiveKind kind = program::CollectiveKind::kAllReduce;
  std::vector<std::int32_t> ranks;  ///< Ascending; of a transfer: sender, receiver.
  Bytes bytes;
  std::int32_t root = -1;                          ///< Of a broadcast: a rank.
  std::vector<program::Transfer> transfers{};      ///< Of an exchange: within `ranks`.
  std::optional<program::TokenRouting> routing{};  ///< Of a token_exchange.
  Spread time;
};

struct Samples {
  std::vector<KernelSample> kernels;          ///< By description, ascending.
  std::vector<CollectiveSample> collectives;  ///< By kind, ranks, bytes.
  std::int64_t overlapped = 0;                ///< Collectives not taken: a member computed.
  std::vector<std::string> outliers;          ///< For people: where and how far off.
};

/// The samples of all runs together.
/// \return kInvalidInput if a measurement does not belong to its Program (other fingerprint, ranks
///     or instances), is of ranks that share a device, or holds a task that ends before it starts;
///     or if two providers ran the same kernel.
Result<Samples> samples_of(const std::vector<MeasuredRun>& runs);

}  // namespace foreshard::calibrate
