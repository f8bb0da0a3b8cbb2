/// \file
/// What a collective puts on a cluster's links: algorithms as data. An algorithm turns a group of
/// devices into
///   - a *flat* form: one activity with a weight on each link and a latency (the default in steps);
///   - a *stepwise* form: every message of every step, as flows with dependencies;
///   - a *closed form*: latency + bytes / bandwidth on idle links, which the flat form equals.
/// To add an algorithm: its .cc, its declaration in algorithms.h, one line in registry.cc.
/// collective_contract_test.cc then holds it to what all must obey.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "strategies/comm/parameters.h"
#include "strategies/program/ir/program.h"
#include "topology/cluster_view.h"

namespace foreshard::comm {

using program::CollectiveKind;

/// The devices of one group, in rank order, and where they are.
struct Participants {
  const ClusterView* cluster = nullptr;
  std::vector<DeviceId> devices;  ///< Distinct, at least 1. Of a transfer: sender, receiver.
  std::uint64_t flow = 0;         ///< Tells groups apart for kEcmpHash.
};

struct LinkLoad {
  LinkId link;
  double bytes_per_byte = 0;  ///< Bytes that cross the link per byte of the operation.
};

/// The flat form of one operation on one group: everything but its size.
struct FlatCollective {
  std::string_view algorithm;     ///< "ring", "tree", ...
  std::string_view protocol;      ///< "LL", "LL128", "Simple"; "" where there is none.
  Seconds latency;                ///< Of all steps, without the bytes.
  std::vector<LinkLoad> loads;    ///< Ascending LinkId.
  double connections = 1;         ///< Channels x queue pairs on the most loaded link.
  double sm_share = 0;            ///< Part of each member's SMs that it holds while it runs.
  double bandwidth_fraction = 1;  ///< Of each link's bandwidth, that the protocol can use.

  /// Time on idle links: latency + bytes x max over links of load / (fraction x bandwidth).
  Seconds idle_time(Bytes bytes, const ClusterView& cluster) const;
};

/// One message of the stepwise form.
struct Message {
  std::int32_t from = 0;  ///< Index into Participants::devices.
  std::int32_t to = 0;
  double part = 0;                  ///< Of the operation's bytes.
  Seconds latency;
  std::vector<std::int32_t> after;  ///< Earlier messages, by index.
};
struct StepwiseCollective {
  std::string_view algorithm;
  std::vector<Message> messages;
};

/// All (algorithm, protocol) forms that this operation can take on this group.
/// \return kInvalidInput for an impossible group, kInfeasible where devices have no route.
Result<std::vector<FlatCollective>> flat_forms(CollectiveKind kind, const Participants& group,
                                               const Parameters& parameters);
/// The one of `forms` with the least idle time for `bytes`; ties: the earlier one. \pre !forms.empty()
std::size_t best_form(const std::vector<FlatCollective>& forms, Bytes bytes,
                      const ClusterView& cluster);
/// The stepwise form of one algorithm (of its one channel, plain alpha-beta: no protocol).
Result<StepwiseCollective> stepwise_form(std::string_view algorithm, CollectiveKind kind,
                                         const Participants& group);

}  // namespace foreshard::comm
