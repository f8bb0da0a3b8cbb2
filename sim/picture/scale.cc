#include "sim/picture/scale.h"

#include <cmath>

namespace foreshard::picture {

Scale Scale::linear(double low, double high, double from, double to) {
  Scale scale;
  scale.low_ = low;
  scale.high_ = high;
  scale.from_ = from;
  scale.to_ = to;
  return scale;
}

Scale Scale::logarithmic(double low, double high, double from, double to) {
  Scale scale = linear(std::log10(low), std::log10(high), from, to);
  scale.logarithmic_ = true;
  return scale;
}

double Scale::operator()(double value) const {
  const double at = logarithmic_ ? std::log10(value) : value;
  return from_ + (at - low_) / (high_ - low_) * (to_ - from_);
}

std::vector<double> Scale::ticks(int most) const {
  constexpr double kRounding = 1e-9;  // A tick at the very end may miss it by so much of a step.
  std::vector<double> ticks;
  if (logarithmic_) {
    const int every = static_cast<int>(std::ceil((high_ - low_) / most));
    const bool few = 3 * (high_ - low_) <= most;
    for (int power = static_cast<int>(std::floor(low_)); power <= high_ + kRounding; ++power) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double at = power + std::log10(digit);
        const bool wanted = digit == 1 ? power % every == 0 : few;
        if (wanted && at >= low_ - kRounding && at <= high_ + kRounding)
          ticks.push_back(digit * std::pow(10.0, power));
      }
    }
    return ticks;
  }
  const double raw = (high_ - low_) / most;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double digit : {5.0, 2.0, 1.0})
    if (digit * power >= raw * (1 - kRounding)) step = digit * power;
  const double first = std::ceil(low_ / step - kRounding);
  const double last = std::floor(high_ / step + kRounding);
  for (int i = 0; i <= 2 * most && first + i <= last; ++i) ticks.push_back((first + i) * step);
  return ticks;
}

}  // namespace foreshard::picture
