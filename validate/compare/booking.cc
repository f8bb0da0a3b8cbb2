#include "validate/compare/booking.h"

#include <algorithm>
#include <set>
#include <utility>

namespace foreshard::compare {
namespace {

struct Change {
  Seconds at;
  bool begins;
  std::size_t interval;
};

}  // namespace

Booking book(std::span<const Interval> intervals, Seconds end) {
  std::vector<Change> changes;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const Seconds last = std::min(intervals[i].end, end);
    if (!(intervals[i].begin < last)) continue;
    changes.push_back({intervals[i].begin, true, i});
    changes.push_back({last, false, i});
  }
  std::ranges::stable_sort(changes, {}, &Change::at);
  Booking out{.of_interval = std::vector<Seconds>(intervals.size())};
  std::set<std::pair<std::int32_t, std::size_t>> active;
  Seconds now;
  const auto pass = [&](Seconds until) {
    if (!(now < until)) return;
    (active.empty() ? out.nothing : out.of_interval[active.begin()->second]) += until - now;
    now = until;
  };
  for (const Change& change : changes) {
    pass(change.at);
    const std::pair key{intervals[change.interval].priority, change.interval};
    if (change.begins)
      active.insert(key);
    else
      active.erase(key);
  }
  pass(end);
  return out;
}

}  // namespace foreshard::compare
