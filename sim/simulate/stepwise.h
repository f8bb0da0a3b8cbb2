/// \file
/// The time of one stepwise collective on idle links, message by message, without a Program: as
/// textbooks have it, each message with the latency of its wire, and of a ring collective one ring.
/// (In a prediction all latencies pass before the first message: internal/messages.h.)
///
/// **Folding.** Messages of one step whose lanes (strategies/comm/lanes.h) have the same class are
/// simulated once. Classes are the coarsest that keep, of every lane: size, latency and links of
/// its messages, the classes of the lanes that it waits for, and, where lanes share links, those of
/// the lanes that it shares them with. In a ring these are the places of its shortest period: a
/// ring over nodes of 8, in pods of 32 nodes, has 256 classes however many pods there are.
/// Exact: by induction over events, lanes of a class are alike at all times (fold.h).
///
/// **Evaluation.** Where no two lanes share a link, nothing but latency and its own links holds a
/// message up, and finish times follow by
///
///     finish(step, lane) = max over what it waits for of finish(...) + latency + bytes / rate.
///
/// In a ring, whose message (s, i) takes d(i) after (s-1, i-1) and (s-1, i), that is the longest
/// way through these: it begins in some lane r up the ring, passes every lane from there to i, and
/// spends the steps that are left at the slowest of them. That one may as well be r itself, since a
/// step further up would cost no more than one more spent there. So
///
///     finish(s, i) = max over r of  sum of d(r..i) + (s - (i - r)) d(r),   i - r <= s,
///
/// over those r that are slower than all lanes after them up to i: as few as there are kinds of
/// hops. No step is simulated; `fold = false` goes through all of them.
///
/// Else the fluid engine runs the classes' messages, each with its multiplicity on every link.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/comm/lanes.h"
#include "topology/congruence.h"

namespace foreshard::sim {

struct StepwiseOptions {
  bool fold = true;
  bool every_message = false;  ///< Keep all finish times, not only the last.
  /// Of the cluster, if the caller has it already: it takes a look at every link.
  const Congruence* congruence = nullptr;
};

struct StepwiseTimes {
  Seconds time;  ///< Of the whole.
  std::int32_t steps = 0;
  std::int32_t classes = 0;
  bool shares_links = false;  ///< Some lanes do: the engine was needed.
  std::vector<std::int32_t> class_of_lane;
  /// With `every_message`: finish times in seconds, step by step, one of each class.
  std::vector<double> finish;

  std::int64_t messages() const { return std::int64_t{steps} * std::ssize(class_of_lane); }
  /// Messages of one lane of each class.
  std::int64_t folded_messages() const { return std::int64_t{steps} * classes; }
  /// \pre every_message was asked for.
  Seconds finish_of(std::int32_t step, std::int32_t lane) const;
};

/// \pre `group` is valid (comm::flat_forms says what that is).
/// \return kInfeasible where there is no route, else as comm::lane_form.
Result<StepwiseTimes> stepwise_times(std::string_view algorithm, comm::CollectiveKind kind,
                                     Bytes bytes, const comm::Participants& group,
                                     const StepwiseOptions& options = {});

}  // namespace foreshard::sim
