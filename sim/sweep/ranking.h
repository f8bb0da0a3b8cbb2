/// \file
/// What the outcomes of a sweep say together: which point is best, which are worth a thought, and
/// whether the goal is met.
///
/// Points may differ in batch, sequence and model, so what is compared is not a step but the work
/// that steps do: the whole training where the sweep has one, else a token (a sample where a point
/// has no tokens).
///
///     time = step x steps of the work     usd = bill of a step x steps     kwh, CO2 likewise
///
/// The bill is rent, or what is written off, and electricity where it is paid apart.
///
/// A point is on the *front* of time and money if no other point is better in one of them and no
/// worse in the other; on the front of time, money and room also if it leaves more memory free than
/// those that are. Points without a price are on neither, come last where money decides, and meet
/// no goal that asks for it: whoever shows a ranking says so.
///
/// The interval of a time is that of its step. Money and energy are as far off as the time that
/// they follow from.
///
/// All points of the grid are looked at, none is left out by a bound: the goal's answer is that of
/// an exhaustive enumeration of the grid. Ties go to the earlier point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"

#include "sim/sweep/results.h"

namespace foreshard::sweep {

enum class Work : std::uint8_t { kTraining, kToken, kSample };

struct WorkFigures {
  Seconds time;
  Seconds low;
  Seconds high;
  std::optional<Dollars> usd;
  std::optional<Joules> energy;
  std::optional<Kilograms> carbon;
};

/// What all points that run are compared by.
Work work_of(const Results& results);
/// \pre the outcome has figures, and steps of such work.
WorkFigures figures_of(const Outcome& outcome, Work work);

/// Of the figures, what points are ordered by; infinite where it is not known.
double measure_of(const WorkFigures& figures, Measure by);

/// Within which values 8 of 10 measurements are expected. \pre the measure is known.
struct MeasureInterval {
  double low = 0;
  double high = 0;
};
MeasureInterval interval_of(const WorkFigures& figures, Measure by);

/// A point that runs and does not meet the goal.
struct Miss {
  std::size_t point = 0;
  Seconds late;           ///< Beyond the goal's time; zero if within.
  Dollars over;           ///< Beyond its budget.
  bool unknown = false;   ///< The price or the energy that the goal asks for is not known.
  bool may_meet = false;  ///< The goal's limits lie within the point's intervals.
  double excess = 0;      ///< The larger one as a part of its limit; infinite if unknown.
};

struct Verdict {
  /// In the order of `ranked`, those that leave less than the memory margin last: the first is the
  /// answer.
  std::vector<std::size_t> met;
  std::vector<Miss> missed;  ///< Least excess first.
  bool may_miss = false;     ///< A limit of the goal lies within an interval of the first met.
};

struct Ranking {
  Work work = Work::kToken;
  std::vector<std::size_t> ranked;  ///< Points that run, best first; those without a price last.
  std::vector<bool> on_front;       ///< Of time and money, by point.
  std::vector<bool> on_room_front;  ///< Of time, money and room.
  /// Points that run, but whose price or energy, by which points are ordered or which the goal
  /// limits, is not known. They are the last ones of `ranked`.
  std::vector<std::size_t> unknown;
  /// Points that run and are left out of the fronts, as they have no price while others do.
  std::vector<std::size_t> off_front;
  std::int64_t overlapping = 0;  ///< Ranked points whose interval overlaps that of the first.
  /// For each value of each axis, the best point that has it, if one runs.
  std::vector<std::vector<std::optional<std::size_t>>> best_with;
  /// Where nothing runs: the infeasible point that misses least memory, else the first one.
  std::optional<std::size_t> closest;
  std::optional<Verdict> verdict;  ///< Where there is a goal.
};
Ranking ranking_of(const Results& results);

}  // namespace foreshard::sweep
