#include "sim/study/break_even.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace foreshard::study {
namespace {

constexpr double kPrecision = 1e-4;

struct Value {
  double number = 0;
  std::string unit;
};

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::optional<Value> value_of(std::string_view text) {
  text = trimmed(text);
  Value value;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value.number);
  if (status != std::errc() || !std::isfinite(value.number)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  value.unit = trimmed(text);
  return value;
}

}  // namespace

std::string ValueRange::at(double value) const {
  return unit.empty() ? fmt::format("{}", value) : fmt::format("{} {}", value, unit);
}

Result<ValueRange> parse_range(std::string_view text) {
  const Error fault{Error::Code::kInvalidInput,
                    fmt::format("'{}' is no range; write LOW..HIGH with one unit, for example "
                                "100..800 Gbit/s or 1..4 USD/h",
                                text.substr(0, 60))};
  const auto dots = text.find("..");
  if (dots == std::string_view::npos) return fault;
  const auto low = value_of(text.substr(0, dots));
  const auto high = value_of(text.substr(dots + 2));
  if (!low || !high || !(low->number < high->number)) return fault;
  if (!low->unit.empty() && low->unit != high->unit) return fault;
  return ValueRange{low->number, high->number, high->unit};
}

Result<BreakEven> break_even(const std::function<Result<double>(double)>& difference,
                             const ValueRange& range) {
  BreakEven found;
  FORESHARD_ASSIGN(found.at_low, difference(range.low));
  FORESHARD_ASSIGN(found.at_high, difference(range.high));
  if (found.at_low == 0) found.value = range.low;
  if (found.at_high == 0) found.value = range.high;
  if (found.value || (found.at_low > 0) == (found.at_high > 0)) return found;
  double low = range.low;
  double high = range.high;
  while (high - low > kPrecision * std::abs(high)) {
    const double middle = low > 0 ? std::sqrt(low * high) : (low + high) / 2;
    FORESHARD_ASSIGN(const double here, difference(middle));
    ((here > 0) == (found.at_low > 0) ? low : high) = middle;
  }
  found.value = low > 0 ? std::sqrt(low * high) : (low + high) / 2;
  return found;
}

}  // namespace foreshard::study
