#include "validate/tables/collective_summary.h"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

#include "validate/tables/statistics.h"

namespace foreshard::accuracy {
namespace {

std::optional<double> median(const std::vector<Pair>& pairs) {
  return statistics_of(pairs).median_ape_pct;
}

bool is_below(const Outcome& row) {
  return row.size_class == "< 64 KiB" || row.size_class == "< 1 MiB";
}

std::string one_decimal(const std::optional<double>& number) {
  return number ? fmt::format("{:.1f}", *number) : "-";
}

}  // namespace

std::int64_t CollectiveSummary::cells_won() const {
  return std::count_if(cells.begin(), cells.end(), [](const NcclCell& one) { return one.won(); });
}

CollectiveSummary collective_summary(const std::vector<Outcome>& rows) {
  std::map<std::string, std::pair<std::vector<Pair>, std::vector<Pair>>> operations;
  std::map<std::tuple<std::string, std::string, std::string>,
           std::pair<std::vector<Pair>, std::vector<Pair>>>
      cells;
  for (const Outcome& row : rows) {
    const auto ours = row.pair();
    if (row.operation.empty() || !ours) continue;
    auto& [below, from] = operations[row.operation];
    (is_below(row) ? below : from).push_back(*ours);
    if (!row.nccl) continue;
    auto& [of_ours, of_nccl] = cells[{row.machine, row.operation, row.size_class}];
    of_ours.push_back(*ours);
    of_nccl.push_back({.measured = ours->measured, .predicted = *row.nccl, .low = {}, .high = {}});
  }
  CollectiveSummary summary;
  for (const auto& [name, parts] : operations)
    summary.operations[name] = {.rows_below = static_cast<std::int64_t>(parts.first.size()),
                                .rows_from = static_cast<std::int64_t>(parts.second.size()),
                                .below_pct = median(parts.first),
                                .from_pct = median(parts.second)};
  for (const auto& [key, parts] : cells)
    summary.cells.push_back({.machine = std::get<0>(key),
                             .operation = std::get<1>(key),
                             .size_class = std::get<2>(key),
                             .rows = static_cast<std::int64_t>(parts.first.size()),
                             .ours_pct = median(parts.first).value_or(0),
                             .nccl_pct = median(parts.second).value_or(0)});
  return summary;
}

std::string to_text(const CollectiveSummary& summary) {
  if (summary.operations.empty()) return "";
  std::string text =
      fmt::format("\n{:<46} {:>6} {:>7} {:>6} {:>7}\n", "by operation, median of |error|", "rows",
                  "<1 MiB", "rows", ">=1 MiB");
  for (const auto& [name, one] : summary.operations)
    text += fmt::format("{:<46} {:>6} {:>7} {:>6} {:>7}\n", name, one.rows_below,
                        one_decimal(one.below_pct), one.rows_from, one_decimal(one.from_pct));
  if (summary.cells.empty()) return text;
  text += fmt::format(
      "\nbeside NCCL's own tuner: nearer in {} of {} cells ({:.0f} %)\n", summary.cells_won(),
      summary.cells.size(),
      100.0 * static_cast<double>(summary.cells_won()) / static_cast<double>(summary.cells.size()));
  for (const NcclCell& one : summary.cells)
    text += fmt::format("  {:<46.46} {:<14} {:<9} {:>5} rows  ours {:>6.1f}  NCCL {:>6.1f}{}\n",
                        one.machine, one.operation, one.size_class, one.rows, one.ours_pct,
                        one.nccl_pct, one.won() ? "" : "  *");
  return text;
}

}  // namespace foreshard::accuracy
