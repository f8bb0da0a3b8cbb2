/// \file
/// How long communications last: per repeat, the time from the arrival of the last member until the
/// last member is done, on the clock that began with the step on all ranks. No member knows this
/// time alone, and the members' medians do not give it, because another member may be last each
/// time.
///
/// Each rank sends the times of its communications to rank 0: 16 bytes per communication and
/// repeat, plus the communication's name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/units.h"

#include "validate/measurement/measurement.h"
#include "validate/replay/plan.h"
#include "validate/replay/statistics.h"

namespace foreshard::replay {

/// The times of a rank's communications (CBOR, RFC 8949).
std::string communications_of(const RankPlan& plan, const Samples& samples);

class Together {
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
