/// \file
/// Measurements of single kernels and single communications in a replay, gathered from all
/// instances of all ranks: one sample per distinct kernel, one per distinct collective. The fits of
/// calibrate/ and profile/ start from them.
///
/// `time` of a kernel has statistics, over all instances, of each instance's mean over its repeats
/// (a step is a sum, and the mean of a sum is the sum of the means). That mean is estimated from
/// the stored percentiles as 0.3 x 10th + 0.4 x 50th + 0.3 x 90th.
///
/// `time` of a collective has statistics of the times from the arrival of its last member until its
/// last member was done (measure::TaskTimes::lasted). In files without that field it is the median
/// time of the member that arrived last, plus the time from that member's median finish to the
/// latest median finish. (Medians of differences are preferred where they exist: differences of
/// medians also contain the drift of the steps.) Collectives during which a member also computed
/// are left out, because concurrent kernels stretch them.
///
/// The interval of a median is its notch, median +- 1.57 x (75th - 25th percentile) / sqrt(n),
/// which covers about 95 %. Instances farther from the median than 5 scaled median absolute
/// deviations and farther than 10 % of it are outliers: they are named, and left out of the
/// percentiles.
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

/// A Program and the measurement of its replay, with equal fingerprints.
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
  std::string provider;  ///< Library that the kernel is from (measure::Providers).
  Spread time;           ///< Statistics of each instance's mean, over all instances.
};

struct CollectiveSample {
  program::CollectiveKind kind = program::CollectiveKind::kAllReduce;
  std::vector<std::int32_t> ranks;  ///< Ascending; a transfer has {sender, receiver}.
  Bytes bytes;  ///< Counted as program::Communication::bytes; an exchange's among `ranks` only.
  std::int32_t root = -1;                          ///< Root rank of a broadcast; else -1.
  std::vector<program::Transfer> transfers{};      ///< Transfers of an exchange, within `ranks`.
  std::optional<program::TokenRouting> routing{};  ///< Routing of a token_exchange.
  Spread time;
};

struct Samples {
  std::vector<KernelSample> kernels;          ///< Ordered by description.
  std::vector<CollectiveSample> collectives;  ///< Ordered by kind, ranks, bytes.
  std::int64_t overlapped = 0;                ///< Collectives left out: a member computed.
  std::vector<std::string> outliers;          ///< Text for people: where and how far off.
};

/// The samples of all runs, merged. Without runs there are none. Operations of one member are left
/// out.
/// \return kInvalidInput if a measurement does not belong to its Program (other fingerprint, ranks
///     or instances), has ranks that share a device, or holds a task that ends before it starts; or
///     if two providers ran the same kernel.
Result<Samples> samples_of(const std::vector<MeasuredRun>& runs);

}  // namespace foreshard::calibrate
