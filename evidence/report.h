/// \file
/// Writes a Report as text, JSON and CSV, for `foreshard accuracy --format` (cli/accuracy.cc).
#pragma once

#include <string>

#include "evidence/accuracy.h"

namespace foreshard::accuracy {

/// Text for people: a table of summaries (all rows, tiers, files, sources, kernels) with the share
/// of measurements within their intervals; collectives by operation (collective_summary.h); the
/// regret of searches; the five rows that are farthest off; and why rows have no prediction.
std::string to_text(const Report& report);

/// Schema foreshard.accuracy/1:
///
///     {"schema": "foreshard.accuracy/1",
///      "rows": [{"id", "file", "family", "tier", "quantity": "time|memory", "unit": "s|B",
///                "measured", "predicted", "low", "high", "error_pct", "status":
///                "ok|unsupported|infeasible|excluded", "reason", "assumed": [],
///                "breakdown_s": {}}],
///      "summaries": {"overall": {}, "files": {name: {}}, "families": {}, "tiers": {},
///                    "kernels": {"gemm on H100-SXM": {}}}}
///
/// A summary is {"rows", "ok", "assumed", "unsupported", "infeasible", "excluded", "mape_pct",
/// "median_ape_pct", "p90_ape_pct", "bias_pct", "kendall_tau", "interval_coverage_pct",
/// "memory_rows", "memory_mape_pct", "memory_bias_pct"}. Values that do not exist are null.
///
/// Some keys are present only if they apply. In a row: "breakdown_s", "framework", "widened_low"
/// and "widened_high" (training steps), "kernel" (kernels), "nccl_s" (collectives that NCCL's tuner
/// estimates). At the top: "collectives", if there are any, and "regret", if it was requested.
/// \param with_rows  whether "rows" is filled; otherwise it is empty.
std::string to_json(const Report& report, bool with_rows = true);

/// CSV with a header and one line per Outcome.
std::string to_csv(const Report& report);

}  // namespace foreshard::accuracy
