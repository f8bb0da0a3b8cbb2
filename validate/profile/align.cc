#include "validate/profile/align.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace foreshard::profile {
namespace {

constexpr double kMostMisfit = 2;
constexpr double kJoining = 0.3;
constexpr double kLeftOut = 2.5;
constexpr std::int64_t kHalfBand = 512;

constexpr double kNever = std::numeric_limits<double>::infinity();
// How a state was reached: the number of units that the task took, or kUnitLeftOut.
constexpr std::int16_t kUnitLeftOut = -1;

// |ln(measured / expected)|, capped below the cost of leaving both out.
double misfit(Seconds measured, Seconds expected) {
  if (!(measured > 0_s) || !(expected > 0_s)) return kMostMisfit;
  return std::min(std::abs(std::log(measured / expected)), kMostMisfit);
}

}  // namespace

// Dynamic programming: state (i, j) is that the first i tasks and j units are dealt with.
Alignment aligned(const std::vector<Expected>& tasks, const std::vector<Seconds>& units) {
  const auto m = std::ssize(tasks);
  const auto n = std::ssize(units);
  Alignment result{.task_of = std::vector<std::int32_t>(units.size(), -1),
                   .cost = kLeftOut * static_cast<double>(m + n)};
  if (m == 0 || n == 0) return result;
  std::vector<Seconds> sums(units.size() + 1);
  for (std::size_t j = 0; j < units.size(); ++j) sums[j + 1] = sums[j] + units[j];
  const std::int64_t half = kHalfBand + n / m;
  const auto lowest = [&](std::int64_t i) {
    return std::max<std::int64_t>(0, i == 0 ? 0 : i * n / m - half);
  };
  const auto highest = [&](std::int64_t i) { return std::min(n, i * n / m + half); };
  std::vector<std::vector<std::int16_t>> how(static_cast<std::size_t>(m) + 1);
  std::vector<double> before;
  for (std::int64_t i = 0; i <= m; ++i) {
    const std::int64_t low = lowest(i);
    const std::int64_t high = highest(i);
    std::vector<double> now(static_cast<std::size_t>(high - low) + 1, kNever);
    auto& row = how[static_cast<std::size_t>(i)];
    row.assign(now.size(), kUnitLeftOut);
    for (std::int64_t j = low; j <= high; ++j) {
      double best = i == 0 && j == 0 ? 0 : kNever;
      std::int16_t by = kUnitLeftOut;
      if (i > 0) {
        const Expected& task = tasks[static_cast<std::size_t>(i - 1)];
        for (std::int64_t taken = 0; taken <= std::min(task.most, j); ++taken) {
          const std::int64_t from = j - taken;
          if (from < lowest(i - 1) || from > highest(i - 1)) continue;
          const Seconds time =
              sums[static_cast<std::size_t>(j)] - sums[static_cast<std::size_t>(from)];
          const double cost =
              before[static_cast<std::size_t>(from - lowest(i - 1))] +
              (taken == 0 ? kLeftOut
                          : misfit(time, task.time) + kJoining * static_cast<double>(taken - 1));
          if (cost < best) {
            best = cost;
            by = static_cast<std::int16_t>(taken);
          }
        }
      }
      if (j > low) {
        const double cost = now[static_cast<std::size_t>(j - 1 - low)] + kLeftOut;
        if (cost < best) {
          best = cost;
          by = kUnitLeftOut;
        }
      }
      now[static_cast<std::size_t>(j - low)] = best;
      row[static_cast<std::size_t>(j - low)] = by;
    }
    before = std::move(now);
  }
  result.cost = before.back();
  std::int64_t j = n;
  for (std::int64_t i = m; i > 0 || j > 0;) {
    const std::int16_t by =
        how[static_cast<std::size_t>(i)][static_cast<std::size_t>(j - lowest(i))];
    if (by == kUnitLeftOut) {
      --j;
      continue;
    }
    for (std::int64_t u = j - by; u < j; ++u)
      result.task_of[static_cast<std::size_t>(u)] = static_cast<std::int32_t>(i - 1);
    j -= by;
    --i;
  }
  return result;
}

}  // namespace foreshard::profile
