// Ranks the outcomes of a sweep (ranking.h), for `foreshard study`, comparisons of sweeps and the
// writers.
#include "sim/sweep/ranking.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace foreshard::sweep {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

double steps_of(const StepFigures& step, Work work) {
  switch (work) {
    case Work::kTraining:
      return step.training_steps.value_or(0);
    case Work::kToken:
      return 1 / step.tokens;
    case Work::kSample:
      return 1 / step.samples;
  }
  return 0;
}

struct Place {
  std::size_t point;
  WorkFigures figures;
  Bytes room;
};

bool no_worse(const Place& a, const Place& b, bool with_room) {
  return a.figures.time <= b.figures.time && *a.figures.usd <= *b.figures.usd &&
         (!with_room || a.room >= b.room);
}

// Which places no other place beats. In this order no place is beaten by a later one, and whatever
// a beaten place beats is also beaten by an unbeaten place before it.
std::vector<bool> front_of(std::vector<Place> places, bool with_room, std::size_t points) {
  std::erase_if(places, [](const Place& place) { return !place.figures.usd; });
  std::ranges::stable_sort(places, {}, [](const Place& place) {
    return std::tuple(place.figures.time, *place.figures.usd, -place.room);
  });
  std::vector<const Place*> front;
  std::vector<bool> on_front(points, false);
  for (const Place& one : places) {
    const bool beaten = std::ranges::any_of(front, [&](const Place* other) {
      return no_worse(*other, one, with_room) && !no_worse(one, *other, with_room);
    });
    if (beaten) continue;
    front.push_back(&one);
    on_front[one.point] = true;
  }
  return on_front;
}

// Whether a limit lies within an interval.
bool is_within(double limit, const MeasureInterval& interval) {
  return interval.low <= limit && limit < interval.high;
}

// Whether the limits that the point misses (or meets) lie within its intervals.
bool may_be_otherwise(const Goal& goal, const Place& place, bool misses) {
  bool late = false;
  bool over = false;
  bool open = false;
  if (goal.within) {
    const double limit = goal.within->in_base();
    const bool within = is_within(limit, interval_of(place.figures, Measure::kTime));
    late = place.figures.time > *goal.within && !within;
    open = open || within;
  }
  if (goal.budget && place.figures.usd) {
    const double limit = goal.budget->in_base();
    const bool within = is_within(limit, interval_of(place.figures, Measure::kUsd));
    over = *place.figures.usd > *goal.budget && !within;
    open = open || within;
  }
  return open && !(misses && (late || over));
}

Miss miss_of(const Goal& goal, const Place& place) {
  Miss miss;
  miss.point = place.point;
  if (goal.within && place.figures.time > *goal.within) {
    miss.late = place.figures.time - *goal.within;
    miss.excess = miss.late / *goal.within;
  }
  miss.unknown =
      measure_of(place.figures, goal.minimise) == kUnknown || (goal.budget && !place.figures.usd);
  if (goal.budget && place.figures.usd && *place.figures.usd > *goal.budget) {
    miss.over = *place.figures.usd - *goal.budget;
    miss.excess = std::max(miss.excess, miss.over / *goal.budget);
  }
  if (miss.unknown) miss.excess = kUnknown;
  miss.may_meet = miss.excess > 0 && !miss.unknown && may_be_otherwise(goal, place, true);
  return miss;
}

Verdict verdict_of(const Goal& goal, const std::vector<Place>& places) {
  Verdict verdict;
  for (const Place& place : places) {
    const Miss miss = miss_of(goal, place);
    if (miss.excess > 0) {
      verdict.missed.push_back(miss);
      continue;
    }
    if (verdict.met.empty()) verdict.may_miss = may_be_otherwise(goal, place, false);
    verdict.met.push_back(place.point);
  }
  std::ranges::stable_sort(verdict.missed, {}, &Miss::excess);
  return verdict;
}

std::optional<std::size_t> closest_of(const Results& results) {
  std::optional<std::size_t> closest;
  const auto missing = [&](std::size_t i) {
    const auto& bytes = results.outcomes[i]->missing;
    return bytes ? bytes->in_base() : kUnknown;
  };
  for (std::size_t i = 0; i < results.outcomes.size(); ++i) {
    if (!results.outcomes[i] || results.outcomes[i]->status != PointStatus::kInfeasible) continue;
    if (!closest || missing(i) < missing(*closest)) closest = i;
  }
  return closest;
}

}  // namespace

const yaml::Names<Work>& yaml_names(const Work*) {
  static const yaml::Names<Work> names{{"training", Work::kTraining, "the whole training"},
                                       {"token", Work::kToken, "one token"},
                                       {"sample", Work::kSample, "one sample"}};
  return names;
}

Work work_of(const Results& results) {
  if (results.question.train) return Work::kTraining;
  const bool tokens = std::ranges::all_of(results.outcomes, [](const auto& one) {
    return !one || !one->figures || one->figures->tokens > 0;
  });
  return tokens ? Work::kToken : Work::kSample;
}

WorkFigures figures_of(const Outcome& outcome, Work work) {
  FORESHARD_CHECK(outcome.figures.has_value());
  const StepFigures& step = *outcome.figures;
  const double steps = steps_of(step, work);
  WorkFigures figures{.time = step.step * steps,
                      .low = step.low * steps,
                      .high = step.high * steps,
                      .usd = {},
                      .energy = {},
                      .carbon = {}};
  if (step.usd) figures.usd = *step.usd * steps;
  if (step.energy) figures.energy = *step.energy * steps;
  if (step.carbon) figures.carbon = *step.carbon * steps;
  return figures;
}

double measure_of(const WorkFigures& figures, Measure by) {
  switch (by) {
    case Measure::kTime:
      return figures.time.in_base();
    case Measure::kUsd:
      return figures.usd ? figures.usd->in_base() : kUnknown;
    case Measure::kKwh:
      return figures.energy ? figures.energy->in_base() : kUnknown;
  }
  return kUnknown;
}

MeasureInterval interval_of(const WorkFigures& figures, Measure by) {
  const double value = measure_of(figures, by);
  return {value * (figures.low / figures.time), value * (figures.high / figures.time)};
}

namespace {

// Adds what is unknown about the points, and the number of points that the first does not beat with
// certainty.
void add_doubts(const std::vector<Place>& places, const Question& question, Ranking& ranking) {
  const auto has_price = [](const Place& place) { return place.figures.usd.has_value(); };
  const bool some_priced = std::ranges::any_of(places, has_price);
  const bool needs_price = question.goal && question.goal->budget;
  for (const Place& place : places) {
    const double measure = measure_of(place.figures, question.rank);
    if (measure == kUnknown || (needs_price && !has_price(place)))
      ranking.unknown.push_back(place.point);
    if (some_priced && !has_price(place)) ranking.off_front.push_back(place.point);
    if (&place == &places.front() || measure == kUnknown) continue;
    if (interval_of(place.figures, question.rank).low <=
        interval_of(places.front().figures, question.rank).high)
      ++ranking.overlapping;
  }
}

}  // namespace

Ranking ranking_of(const Results& results) {
  Ranking ranking;
  ranking.work = work_of(results);
  std::vector<Place> places;
  for (std::size_t i = 0; i < results.outcomes.size(); ++i) {
    const auto& outcome = results.outcomes[i];
    if (!outcome || !outcome->figures) continue;
    places.push_back({i, figures_of(*outcome, ranking.work), outcome->figures->headroom()});
  }
  const Measure by = results.question.rank;
  std::ranges::stable_sort(places, [&](const Place& a, const Place& b) {
    const double first = measure_of(a.figures, by);
    const double second = measure_of(b.figures, by);
    return first != second ? first < second : a.figures.time < b.figures.time;
  });
  for (const Place& place : places) ranking.ranked.push_back(place.point);
  ranking.on_front = front_of(places, false, results.outcomes.size());
  ranking.on_room_front = front_of(places, true, results.outcomes.size());

  for (const AxisNames& axis : results.question.axes)
    ranking.best_with.emplace_back(axis.values.size());
  for (const std::size_t point : ranking.ranked) {
    const auto position = position_of(static_cast<std::int64_t>(point), results.question.axes);
    for (std::size_t axis = 0; axis < position.size(); ++axis) {
      auto& best = ranking.best_with[axis][position[axis]];
      if (!best) best = point;
    }
  }
  if (places.empty()) ranking.closest = closest_of(results);
  add_doubts(places, results.question, ranking);
  if (!results.question.goal) return ranking;
  ranking.verdict = verdict_of(*results.question.goal, places);
  // The answer keeps the memory margin if any point that meets the goal does.
  std::stable_partition(
      ranking.verdict->met.begin(), ranking.verdict->met.end(),
      [&](std::size_t point) { return !results.outcomes[point]->figures->tight; });
  return ranking;
}

}  // namespace foreshard::sweep
