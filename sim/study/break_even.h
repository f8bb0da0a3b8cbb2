/// \file
/// At which value of one number two things cost or take the same.
///
///     find x in [low, high] with  f(x) = 0,   f(x) = metric of one at x - metric of the other
///
/// by bisection, on the logarithm of x where both ends are positive; of whole numbers at these
/// alone. One f is one simulation. Where f changes its sign in a jump, by more than a hundredth of
/// what it changes over the range, or between two whole numbers, nothing is the same: the answer is
/// between which values the sign changes.
/// Not modelled: that f may cross zero more than once; the answer is one crossing.
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
  std::string unit;    ///< Empty for plain numbers.
  bool whole = false;  ///< Only whole numbers are tried. Then both ends are.

  std::string at(double value) const;  ///< "400 Gbit/s"
};
/// \return kInvalidInput, with what to write instead.
Result<ValueRange> parse_range(std::string_view text);

struct NumberWithUnit {
  double number = 0;
  std::string unit;  ///< Empty for plain numbers.
};
/// "400 Gbit/s". Nothing where `text` does not begin with a finite number.
std::optional<NumberWithUnit> number_in(std::string_view text);

struct BreakEven {
  std::optional<double> value;  ///< Where both are the same.
  /// Instead: two values between which the one becomes better that was worse, without their being
  /// the same. Neither: one is better everywhere.
  std::optional<std::pair<double, double>> between;
  double at_low = 0;  ///< f at the ends of the range.
  double at_high = 0;
};
/// \param difference  f. \pre low < high
/// \return what `difference` returns; the value is within 1e-4 of the crossing, relative,
///     or within 1e-6 of the range.
Result<BreakEven> break_even(const std::function<Result<double>(double)>& difference,
                             const ValueRange& range);

}  // namespace foreshard::study
