/// \file
/// Break-even along a numeric axis: between which of its values one choice of another axis becomes
/// better than another choice.
///
///     d(x) = measure of the first choice at x - that of the second,  x a value of the axis
///
/// The measure is the one that ranks the points. For each choice at x it is taken from the best
/// point, so that further axes are free. If d has the opposite sign at the next x, the two choices
/// are equal somewhere in between; `at` is that x if d is linear there:
///
///     at = x + (x' - x) |d(x)| / (|d(x)| + |d(x')|)
///
/// Example: at 16 nodes 10 d against 12 d, at 32 nodes 8 d against 7 d: at = 16 + 16 * 2/3 = 26.7.
///
/// Not modelled: anything between the values; `compare --break-even` simulates there. Points that
/// do not run, or whose measure is unknown, are skipped.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/sweep/ranking.h"
#include "sim/sweep/results.h"

namespace foreshard::sweep {

/// A crossing. Indices are indices of axes, and of their values.
struct Crossing {
  std::size_t along = 0;    ///< The numeric axis.
  std::size_t between = 0;  ///< The axis of the choices.
  std::size_t first = 0;    ///< The choice that is better up to `low` ...
  std::size_t then = 0;     ///< ... and the one that is better from `high` on.
  std::size_t low = 0;      ///< Value of `along`.
  std::size_t high = 0;
  double at = 0;
  std::string unit;   ///< Unit of `at`.
  bool best = false;  ///< Whether no other choice is better than these two at either end.
};

/// For an axis with more values, only crossings of its best ones are reported.
inline constexpr std::size_t kMostPaired = 16;

/// Sorted by axis, then along it. An axis is numeric if each of its values is a number, all with
/// the same unit.
std::vector<Crossing> crossings_of(const Results& results, const Ranking& ranking);

}  // namespace foreshard::sweep
