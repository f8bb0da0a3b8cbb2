// The frame of charts with two axes (frame.h).
#include "sim/picture/internal/frame.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

namespace foreshard::picture {
namespace {

constexpr int kTicks = 6;

// "250", "1.5 M": thousands and more in powers of a thousand.
std::string tick_words(double tick) {
  constexpr std::array<const char*, 6> kSuffixes{"", " k", " M", " G", " T", " P"};
  std::size_t power = 0;
  while (std::abs(tick) >= 1000 && power + 1 < kSuffixes.size()) {
    tick /= 1000;
    ++power;
  }
  return fmt::format("{:.4g}{}", tick + 0.0, kSuffixes[power]);  // + 0: no "-0"
}

}  // namespace

Range around_ratios(const std::vector<double>& values) {
  if (values.empty()) return {1, 10};
  const auto [low, high] = std::ranges::minmax(values);
  const double room = high > low ? std::pow(high / low, 0.03) : 2;
  constexpr double kLeast = 1e-300;  // Smaller and larger values than a double holds stand outside.
  const double first = std::max(low / room, kLeast);
  return {first, std::clamp(high * room, 2 * first, std::max(2 * first, 1 / kLeast))};
}

void horizontal_axis(Svg& svg, const Scale& scale, const std::string& name, double bottom) {
  svg.line({kLeft, bottom}, {kRight, bottom}, "line");
  for (const double tick : scale.ticks(kTicks)) {
    svg.line({scale(tick), kTop}, {scale(tick), bottom}, "grid");
    svg.text({scale(tick), bottom + 18}, tick_words(tick), Anchor::kMiddle);
  }
  svg.text({(kLeft + kRight) / 2, bottom + 40}, name, Anchor::kMiddle);
}

void vertical_axis(Svg& svg, const Scale& scale, const std::string& name) {
  svg.line({kLeft, kTop}, {kLeft, kBottom}, "line");
  for (const double tick : scale.ticks(kTicks)) {
    svg.line({kLeft, scale(tick)}, {kRight, scale(tick)}, "grid");
    svg.text({kLeft - 8, scale(tick) + 4}, tick_words(tick), Anchor::kEnd);
  }
  svg.text({16, kTop - 14}, name, Anchor::kStart, "note");
}

void add_key(Svg& svg, double& left, double top, const std::string& style,
             const std::string& name) {
  constexpr double kSide = 10;
  svg.box({left, top, kSide, kSide}, style, {"key", 0, name});
  svg.text({left + kSide + 4, top + kSide - 1}, name);
  left += 3 * kSide + width_of(name);
}

}  // namespace foreshard::picture
