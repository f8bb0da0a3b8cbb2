/// \file
/// How long communications last: per repeat, from when the last member reached one to when the last
/// member was done, on the clock that began with the step on all ranks. No member knows that alone,
/// and medians of its own times do not tell: another one may be the last each time.
///
/// Each rank sends the times of its communications to rank 0, 16 bytes per communication and repeat
/// and some for its name.
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

/// What a rank tells of its communications (CBOR, RFC 8949).
std::string communications_of(const RankPlan& plan, const Samples& samples);

class Together {
 public:
  /// A rank's part, as communications_of wrote it.
  /// \return false where it is none, or other ranks had another number of repeats.
  bool add(std::int32_t rank, std::string_view text);
  /// Sets TaskTimes::lasted of the rank's communications.
  /// \pre all ranks were added; `tasks` are those of `rank`.
  void fill(std::int32_t rank, std::vector<measure::TaskTimes>& tasks) const;

 private:
  using Key = std::tuple<std::int64_t, std::string, std::int64_t>;  // communicator, tag, ordinal
  struct Lasts {
    std::vector<Seconds> start{};  // By repeat.
    std::vector<Seconds> finish{};
  };
  struct Member {
    std::size_t instance = 0;
    Key key{};
  };
  std::map<Key, Lasts> lasts_;
  std::map<std::int32_t, std::vector<Member>> members_;
};

}  // namespace foreshard::replay
