#include "validate/tables/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace foreshard::accuracy {
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
