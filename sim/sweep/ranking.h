/// \file
/// The joint result of the outcomes of a sweep: which point is best, which ones are worth
/// considering, and whether the goal is met.
///
/// Points may differ in batch, sequence and model, so they are compared not by a step but by the
/// work that steps do: the whole training if the sweep has one, else a token (a sample if a point
/// has no tokens).
///
///     time = step x steps of the work     usd = bill of a step x steps     kWh, CO2: same as usd
///
/// The bill is rent, or depreciation, and electricity if it is paid separately.
///
/// A point is on the *front* of time and money if no other point is better in one of them and no
/// worse in the other. It is on the front of time, money and room also if it leaves more free
/// memory than every point that is better in time and money. Points without a price are on neither
/// front, come last if money decides, and meet no goal that asks for money; every output of a
/// ranking must say so.
///
/// The interval of a time is the interval of its step. Money and energy have the same relative
/// error as the time from which they follow.
///
/// All points of the grid are considered; no bound skips any. So the goal's answer equals an
/// exhaustive enumeration of the grid. Ties go to the earlier point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"

#include "sim/sweep/results.h"

namespace foreshard::sweep {

enum class Work : std::uint8_t { kTraining, kToken, kSample };
const yaml::Names<Work>& yaml_names(const Work*);

struct WorkFigures {
  Seconds time;
  Seconds low;
  Seconds high;
  std::optional<Dollars> usd;
  std::optional<Joules> energy;
  std::optional<Kilograms> carbon;

  std::optional<double> kwh() const {
    return energy ? std::optional(*energy / 1_kWh) : std::nullopt;
  }
};

/// The work by which all points that run are compared.
Work work_of(const Results& results);
/// \pre The outcome has figures, and its steps do such work.
WorkFigures figures_of(const Outcome& outcome, Work work);

/// The figure that orders the points; infinite if it is unknown.
double measure_of(const WorkFigures& figures, Measure by);

/// The interval in which 8 of 10 measurements are expected. \pre The measure is known.
struct MeasureInterval {
  double low = 0;
  double high = 0;
};
MeasureInterval interval_of(const WorkFigures& figures, Measure by);

/// A point that runs and does not meet the goal.
struct Miss {
  std::size_t point = 0;
  Seconds late;           ///< Time beyond the goal's limit; zero if within.
  Dollars over;           ///< Money beyond the goal's budget.
  bool unknown = false;   ///< Whether the price or the energy that the goal asks for is unknown.
  bool may_meet = false;  ///< Whether the goal's limits lie within the point's intervals.
  /// Larger of `late` and `over`, each as a part of its limit; infinite if unknown.
  double excess = 0;
};

struct Verdict {
  /// In the order of `ranked`, but points that leave less than the memory margin come last. The
  /// first one is the answer.
  std::vector<std::size_t> met;
  std::vector<Miss> missed;  ///< Smallest excess first.
  /// Whether a limit of the goal lies within an interval of the first met point.
  bool may_miss = false;
};

struct Ranking {
  Work work = Work::kToken;
  /// Points that run, best first; points with an unknown measure last.
  std::vector<std::size_t> ranked;
  std::vector<bool> on_front;  ///< Point -> whether it is on the front of time and money.
  /// Point -> whether it is on the front of time, money and room.
  std::vector<bool> on_room_front;
  /// Points that run, but whose price or energy is unknown, although points are ordered by it or
  /// the goal limits it.
  std::vector<std::size_t> unknown;
  /// Points that run and have no price while others do: they are left out of the fronts.
  std::vector<std::size_t> off_front;
  /// Number of ranked points whose interval overlaps the first point's.
  std::int64_t overlapping = 0;
  /// For each value of each axis, the best point that has it, if one runs.
  std::vector<std::vector<std::optional<std::size_t>>> best_with;
  /// If nothing runs: the infeasible point that misses the least memory, else the first one.
  std::optional<std::size_t> closest;
  std::optional<Verdict> verdict;  ///< Present if there is a goal.
};
Ranking ranking_of(const Results& results);

}  // namespace foreshard::sweep
