/// \file
/// The outcome of one measurement of a table: the measured value, its prediction with its interval,
/// or why there is no prediction. Jobs of all kinds of tables produce outcomes (table.h);
/// evidence/accuracy.h and `foreshard calibrate` summarise them.
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
  kOk,           ///< Predicted, perhaps with settings that are assumed.
  kUnsupported,  ///< Not predicted: foreshard cannot express what the row states, as `reason` says.
  kInfeasible,   ///< Not predicted: the row can be expressed, but cannot run on its cluster.
  kExcluded,     ///< Not predicted: excluded (exclusions.h), with the exclusion's reason.
};
std::string_view name_of(RowStatus status);

enum class Quantity : std::uint8_t { kTime, kMemory };

struct Outcome {
  std::string id;
  std::string file;    ///< Name of the table's file, without folders.
  std::string family;  ///< The row's source.
  std::string tier;    ///< Tier of the row in the TIERS.csv beside its table; "" if it has none.
  Quantity quantity = Quantity::kTime;
  RowStatus status = RowStatus::kOk;
  std::string reason;                ///< Reason of any status but kOk; with kOk, a remark or "".
  std::vector<std::string> assumed;  ///< Names of settings that the row does not state.
  std::optional<double> measured;    ///< Measured value in seconds or bytes.
  std::optional<double> predicted;   ///< Predicted value in the same unit.
  std::optional<double> low, high;   ///< Interval that should hold 8 of 10 measurements.
  std::optional<sim::Breakdown> breakdown;  ///< Training steps: the breakdown of the prediction.
  std::string study{};                      ///< Training steps: the text of the study.
  std::optional<Strategy> strategy{};  ///< Training steps: the simulated strategy, nothing open.
  std::string kernel{};                ///< Kernels: "gemm on H100-SXM".
  std::string machine{}, operation{}, size_class{};  ///< Collectives: the keys of summaries.
  std::optional<double> nccl{};  ///< Collectives: estimate of NCCL's own tuner, in seconds, if any.

  /// Training steps: the framework whose measured steps the interval rests on.
  std::string framework{};
  /// Training steps: factors by which less certain parameters widen it (sim::IntervalSource).
  std::optional<double> widened_low{}, widened_high{};

  /// Measured and predicted value; nothing unless the status is kOk and both exist.
  std::optional<Pair> pair() const;
};

/// "status: reason" -> number of rows that have no prediction for it.
std::map<std::string, std::int64_t> reasons_of(const std::vector<Outcome>& rows);

/// Sets `low` and `high` to the range around the predicted value.
void set_range(Outcome& outcome, const study::ErrorRange& range);

/// The source without the path of a file in it: "owner/name@commit:path" -> "owner/name@commit".
std::string family_of(std::string_view source);

}  // namespace foreshard::accuracy
