#include "sim/simulate/meetings.h"

#include <algorithm>

namespace foreshard::sim {
namespace {

// The kind of activity that has a shape.
enum class What : std::uint8_t { kNoCommunication, kCommunication, kMeeting };

std::vector<What> what_shapes_are(const Folding& folding, const BuiltWorkload& built) {
  std::vector<What> what(built.workload.shapes().size(), What::kNoCommunication);
  for (const auto& [key, shape] : built.resources.communication_shape) {
    const auto communicator = static_cast<std::size_t>(
        folding.communicator_representative[static_cast<std::size_t>(key.first)]);
    what[shape.first.index()] =
        folding.meets_alone[communicator] ? What::kMeeting : What::kCommunication;
  }
  return what;
}

struct Interval {
  Seconds start;
  Seconds finish;
};

}  // namespace

std::vector<bool> meetings_of(const program::Program& program, const Communicators& communicators) {
  std::vector<bool> meeting;
  meeting.reserve(communicators.all.size());
  for (const Communicator& one : communicators.all)
    meeting.push_back(std::ssize(one.ranks) == program.ranks() && !program::is_with_host(one.kind));
  return meeting;
}

bool met_alone(const Folding& folding, const BuiltWorkload& built, const engine::Timeline& times) {
  if (folding.meets_alone.empty()) return true;
  const std::vector<What> what = what_shapes_are(folding, built);
  const auto activities = built.workload.activities();
  const auto visit = [&](What wanted, auto&& one) {
    for (std::size_t a = 0; a < activities.size(); ++a)
      if (what[activities[a].shape.index()] == wanted)
        one(Interval{times.start[a], times.finish[a]});
  };
  std::vector<Interval> meetings;
  visit(What::kMeeting, [&](const Interval& one) { meetings.push_back(one); });
  std::ranges::sort(meetings, {}, &Interval::start);
  for (std::size_t i = 1; i < meetings.size(); ++i)
    if (meetings[i].start < meetings[i - 1].finish) return false;
  bool alone = true;
  visit(What::kCommunication, [&](const Interval& one) {
    const auto next = std::ranges::upper_bound(meetings, one.start, {}, &Interval::finish);
    alone &= next == meetings.end() || next->start >= one.finish;
  });
  return alone;
}

}  // namespace foreshard::sim
