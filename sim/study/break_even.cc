// Finds where two curves meet (break_even.h), for `compare --break-even` and the crossings of a
// sweep.
#include "sim/study/break_even.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace foreshard::study {
namespace {

constexpr double kPrecision = 1e-4;         // fraction of the value found
constexpr double kPrecisionOfRange = 1e-6;  // near zero: fraction of the range's width
// A change of f that is left between two neighbouring values is a jump, not a crossing, if it is
// more than this fraction of the change of f over the whole range.
constexpr double kJump = 1e-2;
constexpr int kMostRounds = 200;  // halvings of the range

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// An interval with opposite signs of f at its ends.
struct Bracket {
  double low = 0;
  double high = 0;
  double at_low = 0;  // f
  double at_high = 0;
};

// The value to try next: the geometric middle if both ends are positive, else the arithmetic one.
double middle_of(const Bracket& bracket, const ValueRange& range) {
  const double low = bracket.low;
  const double high = bracket.high;
  const double middle = low > 0 ? std::sqrt(low * high) : (low + high) / 2;
  return range.whole ? std::clamp(std::round(middle), low + 1, high - 1) : middle;
}

// Whether the crossing is known precisely enough.
bool is_narrow(const Bracket& bracket, const ValueRange& range) {
  if (range.whole) return bracket.high - bracket.low <= 1;
  const double largest = std::max(std::abs(bracket.low), std::abs(bracket.high));
  return bracket.high - bracket.low <=
         std::max(kPrecision * largest, kPrecisionOfRange * (range.high - range.low));
}

}  // namespace

std::optional<NumberWithUnit> number_in(std::string_view text) {
  text = trimmed(text);
  NumberWithUnit value;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value.number);
  if (status != std::errc() || !std::isfinite(value.number)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  value.unit = trimmed(text);
  return value;
}

std::string ValueRange::text_of(double value) const {
  return unit.empty() ? fmt::format("{}", value) : fmt::format("{} {}", value, unit);
}

Result<ValueRange> parse_range(std::string_view text) {
  const Error fault{Error::Code::kInvalidInput,
                    fmt::format("'{}' is no range; write LOW..HIGH with one unit, for example "
                                "100..800 Gbit/s or 1..4 USD/h",
                                text.substr(0, 60))};
  const auto dots = text.find("..");
  if (dots == std::string_view::npos) return fault;
  const auto low = number_in(text.substr(0, dots));
  const auto high = number_in(text.substr(dots + 2));
  if (!low || !high || !(low->number < high->number)) return fault;
  if (!low->unit.empty() && low->unit != high->unit) return fault;
  return ValueRange{.low = low->number, .high = high->number, .unit = high->unit, .whole = false};
}

Result<BreakEven> break_even(const std::function<Result<double>(double)>& difference,
                             const ValueRange& range) {
  BreakEven found;
  FORESHARD_ASSIGN(found.at_low, difference(range.low));
  FORESHARD_ASSIGN(found.at_high, difference(range.high));
  if (found.at_low == 0) found.value = range.low;
  if (found.at_high == 0) found.value = range.high;
  if (found.value || (found.at_low > 0) == (found.at_high > 0)) return found;
  Bracket bracket{range.low, range.high, found.at_low, found.at_high};
  const double change = std::abs(found.at_high - found.at_low);
  for (int round = 0; round < kMostRounds && !is_narrow(bracket, range); ++round) {
    const double middle = middle_of(bracket, range);
    FORESHARD_ASSIGN(const double here, difference(middle));
    if (here == 0) {
      found.value = middle;
      return found;
    }
    if ((here > 0) == (found.at_low > 0)) {
      bracket.low = middle;
      bracket.at_low = here;
    } else {
      bracket.high = middle;
      bracket.at_high = here;
    }
  }
  if (range.whole || std::abs(bracket.at_high - bracket.at_low) > kJump * change)
    found.between = {bracket.low, bracket.high};
  else
    found.value = middle_of(bracket, range);
  return found;
}

}  // namespace foreshard::study
