/// \file
/// A Report for people and programs.
#pragma once

#include <string>

#include "evidence/accuracy.h"

namespace foreshard::accuracy {

/// A table of summaries (tiers, files, families, kernels, all) with the share of measurements
/// within their intervals, the regret of searches, and the five rows that are farthest off.
std::string to_text(const Report& report);

/// Schema foreshard.accuracy/1:
///
///     {"schema": "foreshard.accuracy/1",
///      "rows": [{"id", "file", "family", "tier", "quantity": "time|memory", "unit": "s|B",
///                "measured", "predicted", "low", "high", "error_pct", "status":
///                "ok|unsupported|infeasible", "reason", "assumed": [], "breakdown_s": {}}],
///      "summaries": {"overall": {}, "files": {name: {}}, "families": {}, "tiers": {},
///                    "kernels": {"gemm on H100-SXM": {}}}}
///
/// A summary is {"rows", "ok", "assumed", "unsupported", "infeasible", "mape_pct",
/// "median_ape_pct", "p90_ape_pct", "bias_pct", "kendall_tau", "interval_coverage_pct",
/// "memory_rows", "memory_mape_pct", "memory_bias_pct"}. What there is not is null. "regret" is
/// there where it was asked for.
/// \param with_rows  else the rows stay out.
std::string to_json(const Report& report, bool with_rows = true);

/// One line per row of the tables.
std::string to_csv(const Report& report);

}  // namespace foreshard::accuracy
