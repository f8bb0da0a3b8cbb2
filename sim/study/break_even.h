/// \file
/// The value of one number at which two things cost the same or take the same time.
///
///     find x in [low, high] with  f(x) = 0,   f(x) = metric of one at x - metric of the other
///
/// `compare --break-even KEY=LOW..HIGH` asks for it. x is in the unit of the range, f in the unit
/// of the metric. The search bisects, on the logarithm of x where both ends are positive, and tries
/// only whole numbers where x is a whole number. One f is one simulation. If f changes its sign in
/// a jump (by more than a hundredth of its change over the range) or between two whole numbers, no
/// x makes both the same: the answer is then the two values between which the sign changes. Not
/// modelled: f may cross zero more than once; the answer is one crossing.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace foreshard::study {

/// A range of a number with its unit: "100 Gbit/s..800 Gbit/s", "1..4 USD/h".
struct ValueRange {
  double low = 0;
  double high = 0;
  std::string unit;  ///< Empty for plain numbers.
  /// Whether only whole numbers are tried; then both ends are whole. The caller sets it where the
  /// key takes no others.
  bool whole = false;

  std::string text_of(double value) const;  ///< The value with the unit: "400 Gbit/s".
};
/// \return kInvalidInput, with advice what to write instead, unless LOW < HIGH and the units agree;
///     LOW may have none.
Result<ValueRange> parse_range(std::string_view text);

struct NumberWithUnit {
  double number = 0;
  std::string unit;  ///< Empty for plain numbers.
};
/// Reads "400 Gbit/s"; nothing if `text` does not begin with a finite number.
std::optional<NumberWithUnit> number_in(std::string_view text);

struct BreakEven {
  /// Value at which both are the same; an end of the range if they are the same there.
  std::optional<double> value;
  /// Alternative to `value`: two values between which the worse one becomes the better one in a
  /// jump, without both ever being the same. If neither is set, one is better everywhere.
  std::optional<std::pair<double, double>> between;
  double at_low = 0;  ///< f at the ends of the range.
  double at_high = 0;
};
/// \param difference  f.
/// \pre low < high
/// \return The errors of `difference`; the value is within 1e-4 of the crossing, relative, or
///     within 1e-6 of the range.
Result<BreakEven> break_even(const std::function<Result<double>(double)>& difference,
                             const ValueRange& range);

}  // namespace foreshard::study
