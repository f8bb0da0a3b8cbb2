/// \file
/// Summarises how well single collective operations are predicted: by operation and size, and in
/// comparison with NCCL's own tuner. Used by evidence/report.cc and cli/calibrate.cc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "validate/tables/outcome.h"

namespace foreshard::accuracy {

/// Errors of one operation.
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

struct CollectiveSummary {
  std::map<std::string, OperationError> operations;  ///< operation -> its errors.
  std::vector<NcclCell> cells;  ///< Sorted by machine, operation and size class.

  std::int64_t cells_won() const;
};

/// The summary of the rows that are predicted collectives.
CollectiveSummary collective_summary(const std::vector<Outcome>& rows);

/// The summary as tables for people; empty without operations.
std::string to_text(const CollectiveSummary& summary);

}  // namespace foreshard::accuracy
