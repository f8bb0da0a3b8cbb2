/// \file
/// Statistics over the repeats of a step: medians, spread, and whether they are certain enough.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/units.h"

#include "validate/measurement/measurement.h"
#include "validate/replay/executor.h"
#include "validate/replay/plan.h"

namespace foreshard::replay {

class Samples {
 public:
  explicit Samples(std::size_t instances) : start_(instances), finish_(instances) {}

  /// \pre the step has `instances` instances.
  void add(const StepTimes& step);

  const std::vector<Seconds>& steps() const { return steps_; }
  /// One per repeat.
  const std::vector<Seconds>& starts_of(std::size_t instance) const { return start_[instance]; }
  const std::vector<Seconds>& finishes_of(std::size_t instance) const { return finish_[instance]; }
  std::vector<measure::TaskTimes> tasks() const;

  /// Whether the medians of the step, and of each kernel that takes 1 % of it or more, are known to
  /// within a fraction `width` of themselves, at a confidence of 95 %. Communication is left out,
  /// because its time includes waiting for late members.
  /// \pre two steps or more.
  bool narrow(double width, const RankPlan& plan) const;

 private:
  std::vector<Seconds> steps_;
  std::vector<std::vector<Seconds>> start_;   // instance -> repeat -> time
  std::vector<std::vector<Seconds>> finish_;  // instance -> repeat -> time
  std::vector<std::vector<Seconds>> slack_;   // instance -> repeat -> slack; or empty
};

/// finish[i] - start[i] for each i.
/// \pre both have the same size.
std::vector<Seconds> differences(const std::vector<Seconds>& finish,
                                 const std::vector<Seconds>& start);

/// Half the width of the 95 % confidence interval of the median, relative to the median. It is
/// computed from the order statistics n/2 -+ 1.96 sqrt(n)/2 and holds for any distribution.
/// Source: W. J. Conover, "Practical Nonparametric Statistics", 3rd ed. 1999, section 3.2.
/// \return infinity for fewer than 6 values, which give no bound at 95 %.
/// \pre values are > 0.
double median_uncertainty(std::vector<Seconds> values);

/// Peak memory of the Program's buffers when its tasks run at these times: what the allocator's
/// peak should be.
Bytes expected_peak(const RankPlan& plan, const std::vector<measure::TaskTimes>& times);

/// The times of a rank's communications (CBOR, RFC 8949).
std::string communications_of(const RankPlan& plan, const Samples& samples);

/// How long communications last: per repeat, the time from the arrival of the last member until the
/// last member is done, on the clock that began with the step on all ranks. No member knows this
/// time alone, and the members' medians do not give it, because another member may be last each
/// time.
///
/// Each rank sends the times of its communications to rank 0: 16 bytes per communication and
/// repeat, plus the communication's name.
class CommunicationDurations {
 public:
  /// Adds a rank's times, as communications_of wrote them.
  /// \return false if the text is malformed, or other ranks had another number of repeats.
  bool add(std::int32_t rank, std::string_view text);
  /// Sets TaskTimes::lasted of the rank's communications.
  /// \pre all ranks were added; `tasks` are the tasks of `rank`.
  void fill(std::int32_t rank, std::vector<measure::TaskTimes>& tasks) const;

 private:
  using Key = std::tuple<std::int64_t, std::string, std::int64_t>;  // communicator, tag, ordinal
  struct Lasts {
    std::vector<Seconds> start{};   // repeat -> latest start over members
    std::vector<Seconds> finish{};  // repeat -> latest finish over members
  };
  struct Member {
    std::size_t instance = 0;
    Key key{};
  };
  std::map<Key, Lasts> lasts_;
  std::map<std::int32_t, std::vector<Member>> members_;
};

}  // namespace foreshard::replay
