// Finds where choices of a sweep's axis cross along another (crossings.h), for the sweep's text and
// JSON.
#include "sim/sweep/crossings.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "sim/study/break_even.h"

namespace foreshard::sweep {
namespace {

constexpr double kNothing = std::numeric_limits<double>::infinity();

// A value of a numeric axis.
struct AxisNumber {
  double number = 0;
  std::size_t value = 0;  // Index.
};

// Whether the text after a number is a unit: "GB/s", "%", the ":1" of "2:1"; not the ",024" of
// "1,024".
bool is_unit(const std::string& text) {
  constexpr std::string_view kOthers = "%:";
  return text.empty() || std::isalpha(static_cast<unsigned char>(text.front())) != 0 ||
         kOthers.find(text.front()) != std::string_view::npos;
}

// The axis's values, sorted by number; empty if the axis is not numeric. Sets `unit` to their
// common unit.
std::vector<AxisNumber> numbers_of(const AxisNames& axis, std::string& unit) {
  std::vector<AxisNumber> numbers;
  for (std::size_t i = 0; i < axis.values.size(); ++i) {
    const auto read = study::number_in(axis.values[i]);
    if (!read || !is_unit(read->unit) || (i > 0 && read->unit != unit)) return {};
    unit = read->unit;
    numbers.push_back({read->number, i});
  }
  std::ranges::sort(numbers, {}, &AxisNumber::number);
  return numbers;
}

// The best measure of each pair of values of two axes.
class BestOfPairs {
 public:
  BestOfPairs(const Results& results, const Ranking& ranking, std::size_t along,
              std::size_t between)
      : choices_(results.question.axes[between].values.size()),
        best_(results.question.axes[along].values.size() * choices_, kNothing),
        least_(results.question.axes[along].values.size(), kNothing) {
    for (const std::size_t point : ranking.ranked) {
      const auto position = position_of(static_cast<std::int64_t>(point), results.question.axes);
      double& best = best_[position[along] * choices_ + position[between]];
      best = std::min(best, measure_of(figures_of(*results.outcomes[point], ranking.work),
                                       results.question.rank));
      least_[position[along]] = std::min(least_[position[along]], best);
    }
  }

  double at(std::size_t value, std::size_t choice) const {
    return best_[value * choices_ + choice];
  }
  // Whether no choice is better at this value.
  bool is_best(std::size_t value, std::size_t choice) const {
    return at(value, choice) <= least_[value];
  }
  std::size_t choices() const { return choices_; }

 private:
  std::size_t choices_;
  std::vector<double> best_;
  std::vector<double> least_;  // value -> best measure of all choices
};

// Adds the crossings at which the first choice and the second change places.
void add_crossings(const BestOfPairs& best, const std::vector<AxisNumber>& numbers,
                   Crossing crossing, std::vector<Crossing>& crossings) {
  const std::size_t one = crossing.first;
  const std::size_t other = crossing.then;
  // The last number at which one of them was better, and by how much; and the first number after it
  // at which both were equal, if there is one.
  std::optional<AxisNumber> last;
  double lead = 0;
  double same = kNothing;
  for (const AxisNumber& here : numbers) {
    const double of_one = best.at(here.value, one);
    const double of_other = best.at(here.value, other);
    if (of_one == kNothing || of_other == kNothing) continue;
    const double ahead = of_other - of_one;  // positive: the first is better
    if (ahead == 0) {
      if (same == kNothing) same = here.number;
      continue;
    }
    if (last && (ahead > 0) != (lead > 0)) {
      const double part = std::abs(lead) / (std::abs(lead) + std::abs(ahead));
      crossing.first = lead > 0 ? one : other;
      crossing.then = lead > 0 ? other : one;
      crossing.low = last->value;
      crossing.high = here.value;
      crossing.at = same == kNothing ? last->number + (here.number - last->number) * part : same;
      crossing.best =
          best.is_best(last->value, crossing.first) && best.is_best(here.value, crossing.then);
      if (crossing.best || best.choices() <= kMostPaired) crossings.push_back(crossing);
    }
    last = here;
    lead = ahead;
    same = kNothing;
  }
}

}  // namespace

std::vector<Crossing> crossings_of(const Results& results, const Ranking& ranking) {
  const auto& axes = results.question.axes;
  std::vector<Crossing> crossings;
  for (std::size_t along = 0; along < axes.size(); ++along) {
    Crossing crossing;
    crossing.along = along;
    const auto numbers = numbers_of(axes[along], crossing.unit);
    if (numbers.size() < 2) continue;
    for (crossing.between = 0; crossing.between < axes.size(); ++crossing.between) {
      if (crossing.between == along) continue;
      const BestOfPairs best(results, ranking, along, crossing.between);
      for (crossing.first = 0; crossing.first < best.choices(); ++crossing.first)
        for (crossing.then = crossing.first + 1; crossing.then < best.choices(); ++crossing.then)
          add_crossings(best, numbers, crossing, crossings);
    }
  }
  return crossings;
}

}  // namespace foreshard::sweep
