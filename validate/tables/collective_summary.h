/// \file
/// How well single operations are predicted: by operation and size, and cell by cell beside NCCL's
/// own tuner.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "validate/tables/outcome.h"

namespace foreshard::accuracy {

struct OperationError {
  std::int64_t rows_below = 0;      ///< Of less than 1 MiB.
  std::int64_t rows_from = 0;       ///< Of at least 1 MiB.
  std::optional<double> below_pct;  ///< Median of |error|. Empty without rows.
  std::optional<double> from_pct;
};

/// One (machine, operation, size class) for which NCCL's tuner has an estimate.
struct NcclCell {
  std::string machine, operation, size_class;
  std::int64_t rows = 0;
  double ours_pct = 0;  ///< Median of |error|.
  double nccl_pct = 0;

  bool won() const { return ours_pct < nccl_pct; }
};

struct CollectiveSummary {
  std::map<std::string, OperationError> operations;
  std::vector<NcclCell> cells;  ///< By machine, operation and class.

  std::int64_t cells_won() const;
};

CollectiveSummary collective_summary(const std::vector<Outcome>& rows);

/// Tables for people; empty without operations.
std::string to_text(const CollectiveSummary& summary);

}  // namespace foreshard::accuracy
