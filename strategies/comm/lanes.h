/// \file
/// The stepwise form of a collective in short: *lanes* of messages instead of messages. A lane is
/// what one member sends to another, step after step; the lanes of a collective wait for each other
/// in the same way in every step. A ring of p members has p lanes of 2 (p - 1) steps, where its
/// messages are 2 p (p - 1).
///
/// stepwise_form (collective.h) is the same, message by message, and says what is in them; where
/// several rings share an operation it has all of them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/comm/collective.h"

namespace foreshard::comm {

/// A message waits for that of step `step - steps_before` of another lane, if there is one.
struct LaneDependency {
  std::int32_t lane = 0;
  std::int32_t steps_before = 0;  ///< 0 only of an earlier lane.
};

struct Lane {
  std::int32_t from = 0;  ///< Index into Participants::devices.
  std::int32_t to = 0;
  double part = 0;  ///< Of the operation's bytes, of each message.
  std::vector<LaneDependency> after;
};

struct LaneForm {
  std::string_view algorithm;
  std::int32_t steps = 1;  ///< Messages of each lane.
  std::vector<Lane> lanes;

  double messages() const { return static_cast<double>(steps) * static_cast<double>(lanes.size()); }
};

/// The messages of `stepwise_form(algorithm, kind, group)`, of a ring collective those of its first
/// ring with all the bytes; latencies are those of the routes. Rings cost O(members), other
/// algorithms O(messages).
/// \return as stepwise_form, but for rings never that the group is too large.
Result<LaneForm> lane_form(std::string_view algorithm, CollectiveKind kind,
                           const Participants& group);

}  // namespace foreshard::comm
