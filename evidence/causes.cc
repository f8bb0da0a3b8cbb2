#include "evidence/causes.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/text.h"

namespace foreshard::accuracy {
namespace {

// Uncertain parameters are named as a cause only if they widen the row's interval by more than this
// factor; otherwise the framework's own error dominates.
constexpr double kNotableWidening = 1.1;

// The part's share of the predicted time.
double share_of(const Outcome& row, const sim::BreakdownPart& part) {
  return ((*row.breakdown).*part.time).in_base() / *row.predicted;
}

// Pearson's correlation of |error| with the part's share; empty if either does not vary.
std::optional<double> correlation_with(const sim::BreakdownPart& part,
                                       const std::vector<const Outcome*>& rows) {
  const auto count = static_cast<double>(rows.size());
  double mean_share = 0;
  double mean_error = 0;
  for (const Outcome* row : rows) {
    mean_share += share_of(*row, part) / count;
    mean_error += std::abs(row->pair()->error_pct()) / count;
  }
  double both = 0;
  double shares = 0;
  double errors = 0;
  for (const Outcome* row : rows) {
    const double share = share_of(*row, part) - mean_share;
    const double error = std::abs(row->pair()->error_pct()) - mean_error;
    both += share * error;
    shares += share * share;
    errors += error * error;
  }
  if (!(shares > 1e-9) || !(errors > 1e-9)) return std::nullopt;
  return both / std::sqrt(shares * errors);
}

}  // namespace

std::optional<Tendency> tendency_of(const std::vector<const Outcome*>& rows) {
  std::vector<const Outcome*> known;
  std::ranges::copy_if(rows, std::back_inserter(known),
                       [](const Outcome* row) { return row->breakdown && row->pair(); });
  if (known.size() < kFewestOfTendency) return std::nullopt;
  std::optional<Tendency> strongest;
  for (const sim::BreakdownPart& part : sim::kBreakdownParts) {
    const auto correlation = correlation_with(part, known);
    if (!correlation || *correlation < kWeakestTendency) continue;
    if (!strongest || *correlation > strongest->correlation)
      strongest = Tendency{&part, *correlation};
  }
  return strongest;
}

std::string in_words(const Tendency& tendency) {
  return fmt::format("farthest off where the share of {} is large (r = {:.2f})",
                     tendency.part->name, tendency.correlation);
}

std::string likely_causes(const Outcome& row, const std::optional<Tendency>& table) {
  std::vector<std::string> causes;
  if (!row.reason.empty()) causes.push_back(row.reason);
  if (!row.assumed.empty()) causes.push_back("assumed: " + join(row.assumed));
  if (row.widened_low && std::max(1 / *row.widened_low, *row.widened_high) > kNotableWidening)
    causes.emplace_back("rates or links that nobody measured on its devices");
  if (table) causes.push_back("its table is " + in_words(*table));
  if (row.breakdown) {
    const auto beside =
        std::ranges::max_element(sim::kBreakdownParts.begin() + 1, sim::kBreakdownParts.end(), {},
                                 [&](const sim::BreakdownPart& part) { return share_of(row, part); });
    causes.push_back(fmt::format("{:.0f} % computation, {:.0f} % {}",
                                 100 * share_of(row, sim::kBreakdownParts.front()),
                                 100 * share_of(row, *beside), beside->name));
  }
  return join(causes, "; ");
}

}  // namespace foreshard::accuracy
