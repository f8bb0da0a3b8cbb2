/// \file
/// Break-even along a numeric axis: between which of its values one choice of another axis becomes
/// better than another choice.
///
///     d(x) = measure of the first choice at x - that of the second,  x a value of the axis
///
/// The measure is what points are ranked by; of each choice at x it is that of its best point, so
/// that further axes are free. Where d has another sign at the next x, the two are the same
/// somewhere between; `at` is where, if d runs straight there:
///
///     at = x + (x' - x) |d(x)| / (|d(x)| + |d(x')|)
///
/// By hand: at 16 nodes 10 d against 12 d, at 32 nodes 8 d against 7 d: at = 16 + 16 * 2/3 = 26.7.
///
/// Not modelled: what lies between the values; `compare --break-even` simulates there. Points that
/// do not run, or whose measure is unknown, are passed over.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/sweep/ranking.h"
#include "sim/sweep/results.h"

namespace foreshard::sweep {

/// Indices are those of axes, and of values of theirs.
struct Crossing {
  std::size_t along = 0;    ///< The numeric axis.
  std::size_t between = 0;  ///< The axis of the choices.
  std::size_t first = 0;    ///< The choice that is better up to `low` ...
  std::size_t then = 0;     ///< ... and the one that is better from `high` on.
  std::size_t low = 0;      ///< Of `along`.
  std::size_t high = 0;
  double at = 0;
  std::string unit;   ///< Of `at`.
  bool best = false;  ///< No other choice is better than these at either end.
};

/// An axis with more values has only the crossings of its best ones.
inline constexpr std::size_t kMostPaired = 16;

/// By axis, then along it. An axis is numeric if each of its values is a number, all with one unit.
std::vector<Crossing> crossings_of(const Results& results, const Ranking& ranking);

}  // namespace foreshard::sweep
