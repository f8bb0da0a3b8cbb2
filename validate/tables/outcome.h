/// \file
/// The outcome of one row of a table of measurements.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/simulate/prediction.h"
#include "sim/study/interval.h"
#include "strategies/parallelism/strategy.h"
#include "validate/tables/statistics.h"

namespace foreshard::accuracy {

enum class RowStatus : std::uint8_t {
  kOk,           ///< Predicted; perhaps with something assumed.
  kUnsupported,  ///< States something that foreshard cannot express; `reason` explains.
  kInfeasible,   ///< Can be expressed, but not run on that cluster.
  kExcluded,     ///< Left out by the list of exclusions; `reason` is its reason.
};
std::string_view name_of(RowStatus status);

enum class Quantity : std::uint8_t { kTime, kMemory };

struct Outcome {
  std::string id;
  std::string file;    ///< Without its folders.
  std::string family;  ///< The source.
  std::string tier;    ///< "" unless TIERS.csv lies beside the table and has the row.
  Quantity quantity = Quantity::kTime;
  RowStatus status = RowStatus::kOk;
  std::string reason;                ///< Of a status that is not kOk; of kOk, a remark or "".
  std::vector<std::string> assumed;  ///< What the row does not state.
  std::optional<double> measured;    ///< Seconds, or bytes.
  std::optional<double> predicted;
  std::optional<double> low, high;          ///< 8 of 10 measurements are expected within.
  std::optional<sim::Breakdown> breakdown;  ///< Of training steps.
  std::string study{};                      ///< Training steps: the text of the study.
  std::optional<Strategy> strategy{};  ///< Training steps: what was simulated, with nothing open.
  std::string kernel{};                ///< Of kernels: "gemm on H100-SXM".
  /// Of collectives.
  std::string machine{}, operation{}, size_class{};
  std::optional<double> nccl{};  ///< What NCCL's own tuner expects, in seconds, where it applies.

  /// Of training steps: whose residuals the interval rests on, and what less sure parameters add to
  /// them (sim::IntervalSource).
  std::string framework{};
  std::optional<double> widened_low{}, widened_high{};

  /// Empty unless both values are there.
  std::optional<Pair> pair() const;
};

/// Why rows have no prediction, as "status: reason", and how many.
std::map<std::string, std::int64_t> reasons_of(const std::vector<Outcome>& rows);

/// Sets low and high to the range around the predicted value.
void set_range(Outcome& outcome, const study::ErrorRange& range);

/// The source without the path inside it: "owner/name@commit:path" -> "owner/name@commit".
std::string family_of(std::string_view source);

}  // namespace foreshard::accuracy
