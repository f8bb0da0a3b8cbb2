#include "validate/tables/outcome.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace foreshard::accuracy {

std::string_view name_of(RowStatus status) {
  switch (status) {
    case RowStatus::kOk:
      return "ok";
    case RowStatus::kUnsupported:
      return "unsupported";
    case RowStatus::kInfeasible:
      return "infeasible";
    case RowStatus::kExcluded:
      return "excluded";
  }
  FORESHARD_CHECK(false);
}

std::map<std::string, std::int64_t> reasons_of(const std::vector<Outcome>& rows) {
  std::map<std::string, std::int64_t> counts;
  for (const Outcome& row : rows)
    if (row.status != RowStatus::kOk)
      ++counts[fmt::format("{}: {}", name_of(row.status), row.reason)];
  return counts;
}

void set_range(Outcome& outcome, const study::ErrorRange& range) {
  outcome.low = *outcome.predicted * range.low;
  outcome.high = *outcome.predicted * range.high;
}

std::optional<Pair> Outcome::pair() const {
  if (status != RowStatus::kOk || !measured || !predicted) return std::nullopt;
  return Pair{.measured = *measured,
              .predicted = *predicted,
              .low = blind_low ? blind_low : low,
              .high = blind_high ? blind_high : high};
}

std::string family_of(std::string_view source) {
  const auto commit = source.find('@');
  const auto colon = source.find(':', commit == std::string_view::npos ? 0 : commit);
  return std::string(source.substr(0, colon));
}

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

void write(Page& page, const CollectiveSummary& summary) {
  TextTable table({"<by operation, median of |error|", ">rows", "><1 MiB", ">rows", ">>=1 MiB"});
  for (const auto& [name, one] : summary.operations)
    table.row(name, one.rows_below, one_decimal(one.below_pct), one.rows_from,
              one_decimal(one.from_pct));
  if (!summary.operations.empty()) page.line();
  page.table(table);
  if (summary.cells.empty()) return;
  page.line(fmt::format("\nbeside NCCL's own tuner: nearer in {} of {} cells ({:.0f} %)",
                        summary.cells_won(), summary.cells.size(),
                        100.0 * static_cast<double>(summary.cells_won()) /
                            static_cast<double>(summary.cells.size())));
  TextTable cells({"<", "<", "<", ">rows", ">ours", ">NCCL", "<"});
  for (const NcclCell& one : summary.cells)
    cells.row(one.machine, one.operation, one.size_class, one.rows,
              fmt::format("{:.1f}", one.ours_pct), fmt::format("{:.1f}", one.nccl_pct),
              one.won() ? "" : "*");
  page.table(cells);
}

namespace {

// The number of pairs of equal elements in a sorted range of `count` elements.
template <class Same>
double ties(std::size_t count, const Same& same) {
  double result = 0;
  double run = 1;
  for (std::size_t i = 1; i <= count; ++i) {
    if (i < count && same(i - 1, i)) {
      ++run;
      continue;
    }
    result += run * (run - 1) / 2;
    run = 1;
  }
  return result;
}

// Sorts [begin, end) and returns the number of exchanges of neighbours that a bubble sort would
// make.
double exchanges(std::vector<double>& values, std::vector<double>& scratch, std::size_t begin,
                 std::size_t end) {
  if (end - begin < 2) return 0;
  const std::size_t middle = begin + (end - begin) / 2;
  double count =
      exchanges(values, scratch, begin, middle) + exchanges(values, scratch, middle, end);
  std::size_t left = begin;
  std::size_t right = middle;
  for (std::size_t out = begin; out < end; ++out) {
    if (right == end || (left < middle && values[left] <= values[right])) {
      scratch[out] = values[left++];
    } else {
      count += static_cast<double>(middle - left);
      scratch[out] = values[right++];
    }
  }
  std::copy(scratch.begin() + static_cast<std::ptrdiff_t>(begin),
            scratch.begin() + static_cast<std::ptrdiff_t>(end),
            values.begin() + static_cast<std::ptrdiff_t>(begin));
  return count;
}

}  // namespace

std::optional<double> kendall_tau(const std::vector<Pair>& pairs) {
  if (pairs.size() < 2) return std::nullopt;
  std::vector<std::pair<double, double>> points;
  points.reserve(pairs.size());
  for (const Pair& pair : pairs) points.emplace_back(pair.measured, pair.predicted);
  std::ranges::sort(points);
  const double all = static_cast<double>(pairs.size()) * static_cast<double>(pairs.size() - 1) / 2;
  const double measured_ties = ties(points.size(), [&](std::size_t a, std::size_t b) {
    return points[a].first == points[b].first;
  });
  const double both_ties =
      ties(points.size(), [&](std::size_t a, std::size_t b) { return points[a] == points[b]; });
  std::vector<double> predicted;
  predicted.reserve(points.size());
  for (const auto& point : points) predicted.push_back(point.second);
  std::vector<double> scratch(predicted.size());
  const double discordant = exchanges(predicted, scratch, 0, predicted.size());
  const double predicted_ties = ties(
      predicted.size(), [&](std::size_t a, std::size_t b) { return predicted[a] == predicted[b]; });
  const double spread = (all - measured_ties) * (all - predicted_ties);
  if (!(spread > 0)) return std::nullopt;
  const double concordant = all - measured_ties - predicted_ties + both_ties - discordant;
  return (concordant - discordant) / std::sqrt(spread);
}

Statistics statistics_of(const std::vector<Pair>& pairs) {
  Statistics result;
  result.pairs = static_cast<std::int64_t>(pairs.size());
  if (pairs.empty()) return result;
  const auto count = static_cast<double>(pairs.size());
  std::vector<double> errors;
  double bias = 0;
  std::size_t with_interval = 0;
  std::size_t covered = 0;
  for (const Pair& pair : pairs) {
    bias += pair.error_pct() / count;
    errors.push_back(std::abs(pair.error_pct()));
    if (!pair.low || !pair.high) continue;
    ++with_interval;
    if (*pair.low <= pair.measured && pair.measured <= *pair.high) ++covered;
  }
  std::ranges::sort(errors);
  const std::size_t n = errors.size();
  result.mape_pct = std::accumulate(errors.begin(), errors.end(), 0.0) / count;
  result.median_ape_pct = n % 2 == 1 ? errors[n / 2] : (errors[n / 2 - 1] + errors[n / 2]) / 2;
  result.p90_ape_pct = errors[(9 * n + 9) / 10 - 1];
  result.bias_pct = bias;
  result.kendall_tau = kendall_tau(pairs);
  if (with_interval > 0)
    result.interval_coverage_pct =
        100 * static_cast<double>(covered) / static_cast<double>(with_interval);
  return result;
}

}  // namespace foreshard::accuracy
