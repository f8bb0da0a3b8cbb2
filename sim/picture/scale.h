/// \file
/// From numbers to pixels, with the ticks of an axis.
#pragma once

#include <vector>

namespace foreshard::picture {

/// An interval of numbers, laid on an interval of pixels in proportion, or to the logarithm.
class Scale {
 public:
  /// \pre low < high
  static Scale linear(double low, double high, double from, double to);
  /// \pre 0 < low < high
  static Scale logarithmic(double low, double high, double from, double to);

  /// The pixel of `value`.
  double operator()(double value) const;

  /// Round numbers within the interval, at most about `most` of them: steps of 1, 2 or 5 times a
  /// power of ten; on a logarithmic scale powers of ten, and 2 and 5 times these where there are
  /// few.
  std::vector<double> ticks(int most) const;

 private:
  bool logarithmic_ = false;
  double low_ = 0;  // of a logarithmic scale: their logarithms
  double high_ = 1;
  double from_ = 0;
  double to_ = 1;
};

}  // namespace foreshard::picture
