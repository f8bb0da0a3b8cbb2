// Numbers and columns in texts for people (numbers.h), used by all text reports of sim/.
#include "sim/report/numbers.h"

#include <array>
#include <cmath>
#include <fmt/format.h>

namespace foreshard::report {
namespace {

struct Scale {
  double scale;
  std::string_view word;
};

// Three significant digits and the word of the largest scale that the number reaches, if any.
template <std::size_t N>
std::string with_word(double number, const std::array<Scale, N>& scales) {
  // 999.5 would be written as 1000.
  constexpr double kRounding = 0.9995;
  for (const auto& [scale, word] : scales) {
    if (number < scale * kRounding) continue;
    const double value = number / scale;
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f}{}", value, decimals, word);
  }
  return fmt::format("{:.3g}{}", number, scales.back().scale == 1 ? scales.back().word : "");
}

}  // namespace

std::string scaled(double number) {
  return with_word(number, std::to_array<Scale>({{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}}));
}

std::string watt_hours(Joules energy) {
  constexpr double kSecondsPerHour = 3600;
  return with_word(energy / 1_J / kSecondsPerHour,
                   std::to_array<Scale>(
                       {{1e12, " TWh"}, {1e9, " GWh"}, {1e6, " MWh"}, {1e3, " kWh"}, {1, " Wh"}}));
}

std::string percent(double ratio) {
  return fmt::format("{:.1f} %", 100 * ratio);
}

}  // namespace foreshard::report
