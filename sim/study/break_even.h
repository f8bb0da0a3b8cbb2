/// \file
/// At which value of one number two things cost or take the same.
///
///     find x in [low, high] with  f(x) = 0,   f(x) = metric of one at x - metric of the other
///
/// by bisection, on the logarithm of x where both ends are positive. One f is one simulation.
/// Not modelled: that f may cross zero more than once; the answer is one crossing.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foreshard::study {

/// A range of a number with its unit: "100 Gbit/s..800 Gbit/s", "1..4 USD/h".
struct ValueRange {
  double low = 0;
  double high = 0;
  std::string unit;  ///< Empty for plain numbers.

  std::string at(double value) const;  ///< "400 Gbit/s"
};
/// \return kInvalidInput, with what to write instead.
Result<ValueRange> parse_range(std::string_view text);

struct BreakEven {
  std::optional<double> value;  ///< Where both are the same; empty if one is better everywhere.
  double at_low = 0;            ///< f at the ends of the range.
  double at_high = 0;
};
/// \param difference  f. \pre low < high
/// \return what `difference` returns; the value is within 1e-4 of the crossing, relative.
Result<BreakEven> break_even(const std::function<Result<double>(double)>& difference,
                             const ValueRange& range);

}  // namespace foreshard::study
