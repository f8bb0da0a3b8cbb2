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

#include "base/page.h"

#include "sim/simulate/prediction.h"
#include "sim/study/interval.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::accuracy {

/// Statistics of prediction errors over pairs of measured and predicted values. Used for every
/// summary of outcomes (evidence/accuracy.cc, collective_summary.cc) and for tau in
/// evidence/regret.cc.
///
/// A measured value and its prediction, both in seconds or both in bytes.
struct Pair {
  double measured = 0;  ///< Above 0.
  double predicted = 0;
  std::optional<double> low, high;  ///< Interval of the prediction, if it has one.

  /// The error in percent of the measured value; negative if the prediction is too low.
  double error_pct() const { return 100 * (predicted - measured) / measured; }
};

/// Members are empty if they are undefined: without pairs, or as their notes say.
struct Statistics {
  std::int64_t pairs = 0;
  std::optional<double> mape_pct;        ///< Mean of |error|.
  std::optional<double> median_ape_pct;  ///< Median of |error|; mean of the middle two if even.
  std::optional<double> p90_ape_pct;     ///< Nearest rank: the ceil(0.9 n)-th smallest |error|.
  std::optional<double> bias_pct;        ///< Mean of the error with its sign.
  std::optional<double> kendall_tau;     ///< Empty as kendall_tau() below.
  /// Share of measured values within [low, high], over the pairs with an interval; empty if none
  /// has one.
  std::optional<double> interval_coverage_pct;
};

Statistics statistics_of(const std::vector<Pair>& pairs);

/// Kendall's tau-b of measured against predicted values: the probability that prediction puts two
/// rows in the measured order minus the probability that it reverses them, corrected for ties,
///
///     tau = (concordant - discordant) / sqrt((n0 - ties measured) (n0 - ties predicted)),
///
/// with n0 = n (n - 1) / 2. Sorts and merges: n log n.
/// Source: Knight, "A computer method for calculating Kendall's tau with ungrouped data", J. Am.
/// Stat. Assoc. 61 (1966).
/// \return Nothing for fewer than two pairs, or if all measured or all predicted values are equal.
std::optional<double> kendall_tau(const std::vector<Pair>& pairs);

enum class RowStatus : std::uint8_t {
  kOk,           ///< Predicted, perhaps with settings that are assumed.
  kUnsupported,  ///< Not predicted: foreshard cannot express what the row states, as `reason` says.
  kInfeasible,   ///< Not predicted: the row can be expressed, but cannot run on its cluster.
  kExcluded,     ///< Not predicted: excluded (collective_rows.h), with the exclusion's reason.
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

  /// Training steps: what they are, for the intervals of steps like them.
  std::optional<study::StepKind> kind{};
  /// Training steps: factors by which less certain parameters widen it (sim::IntervalSource).
  std::optional<double> widened_low{}, widened_high{};
  /// Training steps: the interval that all sources but its own give.
  std::optional<double> blind_low{}, blind_high{};

  /// Measured and predicted value, with the blind interval where there is one; nothing unless the
  /// status is kOk and both exist.
  std::optional<Pair> pair() const;
};

/// "status: reason" -> number of rows that have no prediction for it.
std::map<std::string, std::int64_t> reasons_of(const std::vector<Outcome>& rows);

/// Sets `low` and `high` to the range around the predicted value.
void set_range(Outcome& outcome, const study::ErrorRange& range);

/// The source without the path of a file in it: "owner/name@commit:path" -> "owner/name@commit".
std::string family_of(std::string_view source);

/// Errors of one collective operation.
struct OperationError {
  std::int64_t rows_below = 0;      ///< Rows of less than 1 MiB.
  std::int64_t rows_from = 0;       ///< Rows of at least 1 MiB.
  std::optional<double> below_pct;  ///< Median of |error| below 1 MiB; empty without rows.
  std::optional<double> from_pct;   ///< Median of |error| from 1 MiB on; empty without rows.
};

/// Errors of one (machine, operation, size class), over the rows that NCCL's tuner can estimate.
struct NcclCell {
  std::string machine, operation, size_class;
  std::int64_t rows = 0;
  double ours_pct = 0;  ///< Median of |error| of our predictions.
  double nccl_pct = 0;  ///< Median of |error| of NCCL's tuner.

  /// Whether our predictions are closer.
  bool won() const { return ours_pct < nccl_pct; }
};

/// How well single collective operations are predicted, by operation and size, and in comparison
/// with NCCL's own tuner.
struct CollectiveSummary {
  std::map<std::string, OperationError> operations;  ///< operation -> its errors.
  std::vector<NcclCell> cells;  ///< Sorted by machine, operation and size class.

  std::int64_t cells_won() const;
};

/// The summary of the rows that are predicted collectives.
CollectiveSummary collective_summary(const std::vector<Outcome>& rows);

/// The summary as tables for people; empty without operations.
void write(Page& page, const CollectiveSummary& summary);

}  // namespace foreshard::accuracy
