/// \file
/// What a collective puts on a cluster's links: algorithms as data. An algorithm turns a group of
/// devices into
///   - a *flat* form: one activity with a weight on each link and a latency (the default in steps);
///   - a *stepwise* form: every message of every step, as flows with dependencies; what passes
///     before bytes flow is that of the flat form;
///   - a *closed form*: latency + bytes / bandwidth on idle links, which the flat form equals.
/// To add an algorithm: its .cc, its declaration in algorithms.h, one line in registry.cc.
/// collective_contract_test.cc then holds it to what all must obey.
///
///     const auto forms = flat_forms(CollectiveKind::kAllReduce, group, parameters);
///     const FlatCollective& form = (*forms)[best_form(*forms, 64_MiB, cluster)];
///     form.idle_time(64_MiB, cluster);  // or predict(...), which does all three
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/comm/parameters.h"
#include "strategies/program/ir/names.h"
#include "strategies/program/ir/program.h"
#include "topology/cluster_view.h"

namespace foreshard::comm {

using program::CollectiveKind;
using program::name_of;

/// One message of an exchange, between members.
struct Transfer {
  std::int32_t from = 0;  ///< Index into Participants::devices.
  std::int32_t to = 0;
  double part = 0;      ///< Of the operation's bytes. Invariant: > 0.
  double messages = 1;  ///< How many messages it stands for, one after another. Invariant: >= 1.
};

/// The devices of one group, in rank order, and where they are.
struct Participants {
  const ClusterView* cluster = nullptr;
  std::vector<DeviceId> devices;  ///< Distinct, at least 1. Of a transfer: sender, receiver.
  std::uint64_t flow = 0;         ///< Tells groups apart for kEcmpHash.
  std::int32_t root = 0;          ///< Of a broadcast: the member that has the data.
  /// Channels of a transfer across the network, where the communicator that it is part of has fewer
  /// for a peer than the form (nccl/peer_channels.h); 0: the form's.
  std::int64_t peer_channels = 0;
  std::vector<Transfer> transfers{};               ///< Of an exchange, and of nothing else.
  std::optional<program::TokenRouting> routing{};  ///< Of a token_exchange, likewise.
};

struct LinkLoad {
  LinkId link;
  double bytes_per_byte = 0;  ///< Bytes that cross the link per byte of the operation.
};

/// What passes before the bytes of an operation flow at their full rate, besides the latency.
///
///  - A pipelined algorithm (chain, tree, an all-to-all through buffers) sends chunks; the last one
///    ends `fill_chunks` chunk times after an unpipelined operation would.
///  - Short operations use fewer channels: each takes at least `channel_bytes`. `channels` of them
///    carry the full rate (fewer than there are where a link is slower than they), so B bytes take
///    as long as max(B, channels x min(B, channel_bytes)) at that rate.
///  - Long messages are asked for first: `rendezvous` x B / (B + eager_bytes).
struct StartUp {
  double fill_chunks = 0;
  Bytes chunk;          ///< Largest chunk of a pipeline.
  double channels = 1;  ///< That carry the full rate: it, over the rate of one. Invariant: > 0.
  Bytes channel_bytes;
  Seconds rendezvous;
  Bytes eager_bytes = 1_B;
  Seconds inject;      ///< More, if the operation's messages are short: of at most
  Bytes inject_bytes;  ///< so many of its bytes.
  Seconds empty;       ///< Less, of an operation without bytes.
  /// Largest operation for which the protocol is taken where there is another one.
  Bytes most_bytes = Bytes::from_base(std::numeric_limits<double>::infinity());

  /// Seconds, given the full rate. Such that delay + bytes / rate never falls with bytes, but
  /// beyond `inject_bytes`.
  Seconds delay(Bytes bytes, BytesPerSecond rate) const;
};

/// Time on idle links, for callers that need it often.
struct TimeCurve {
  Seconds latency;
  BytesPerSecond rate;
  StartUp start{};

  Seconds operator()(Bytes bytes) const {
    return latency + start.delay(bytes, rate) + bytes / rate;
  }
};
/// The least of them for `bytes`, of those whose protocol is taken for so many; ties: the earlier.
/// \pre !curves.empty()
std::size_t least_of(const std::vector<TimeCurve>& curves, Bytes bytes);

/// What a protocol can use of each kind of link by itself, and what the root complex lets pass.
struct LinkEfficiency {
  double nvlink = 1;
  double pcie = 1;  ///< Also between sockets.
  double network = 1;
  /// Bytes of the operation per second through the root complex.
  BytesPerSecond through_host = BytesPerSecond::from_base(std::numeric_limits<double>::infinity());

  double of(LinkKind kind) const;
};

/// The flat form of one operation on one group: everything but its size.
struct FlatCollective {
  std::string_view algorithm;  ///< "ring", "tree", ... Static storage.
  std::string_view protocol;   ///< "LL", "LL128", "Simple"; "" where there is none. Static storage.
  Seconds latency;             ///< Of all steps, without the bytes.
  std::vector<LinkLoad> loads;  ///< Ascending LinkId.
  double channels = 1;     ///< CTAs that carry it; each holds a multiprocessor of every member.
  double connections = 1;  ///< Channels x queue pairs on the most loaded link.
  double sm_share = 0;     ///< Part of each member's SMs that it holds while it runs.
  /// Part of each link's bandwidth that the form uses: what makes its rate on idle links that of
  /// the kind of link that is slowest by its own efficiency.
  double bandwidth_fraction = 1;
  LinkEfficiency efficiency{};  ///< From which bandwidth_fraction follows.
  /// Most bytes of the operation per second, whatever the links: what its channels can copy.
  BytesPerSecond rate_cap = BytesPerSecond::from_base(std::numeric_limits<double>::infinity());
  StartUp start;
  bool measured = false;  ///< Its time is that of a MeasuredCollective.
  /// It goes in rounds that wait for one another; this form has the bytes of all rounds on the
  /// links at once, so that links which are busy in different rounds do not add up.
  bool overlaps_rounds = false;
  double detour = 0;  ///< The part of all its flows that takes detours (Route::taken).

  /// Bytes per second on idle links: min(rate_cap, min over links of fraction x bandwidth / load).
  BytesPerSecond idle_rate(const ClusterView& cluster) const;
  /// What passes before the bytes flow at the idle rate: latency + start.delay.
  Seconds delay(Bytes bytes, const ClusterView& cluster) const;
  /// The link that decides the idle rate by the efficiency of its kind; the lowest of several;
  /// invalid if the channels or the root complex do.
  LinkId bottleneck(const ClusterView& cluster) const;
  /// Time on idle links: delay + bytes / idle rate.
  Seconds idle_time(Bytes bytes, const ClusterView& cluster) const;
  TimeCurve curve(const ClusterView& cluster) const;
};

/// One message of the stepwise form. It carries `chunk_count` chunks from `first_chunk` on of
/// the buffer that its sender works in (all_to_all: of its send buffer), which StepwiseCollective
/// cuts into `chunks` equal ones: first_chunk, first_chunk + chunk_step, ... modulo `chunks`.
struct Message {
  std::int32_t from = 0;  ///< Index into Participants::devices.
  std::int32_t to = 0;
  double part = 0;  ///< Of the operation's bytes: chunk_count / chunks.
  Seconds latency;  ///< Of its wire. FlatCollective::delay has those of the whole operation.
  std::vector<std::int32_t> after;  ///< Earlier messages, by index.
  std::int32_t first_chunk = 0;
  std::int32_t chunk_count = 1;
  std::int32_t chunk_step = 1;
  bool reduces = false;  ///< The receiver adds it to what it has; else it overwrites.
};
struct StepwiseCollective {
  std::string_view algorithm;
  std::int32_t chunks = 1;
  /// A message passes on what those of `after` bring while they bring it, a little at a time: all
  /// of them are under way together. FlatCollective::delay has what it takes to fill the pipeline.
  bool pipelined = false;
  bool between_peers = false;  ///< Messages are sends: they take ClusterView::peer_route().
  std::vector<Message> messages;

  /// The route of one message.
  /// \return As ClusterView::route.
  Result<Route> route_of(const Message& message, const Participants& group) const;
};

/// All (algorithm, protocol) forms that this operation can take on this group, in the registry's
/// order, and in that of `parameters.forms`; those `on_request` only if a choice names them. A
/// group of one device has one form, which costs nothing but for operations with the host
/// (host_copy.h).
/// \return kInvalidInput for an impossible group, kInfeasible where devices have no route,
///     kUnsupported if `parameters` has no form for the operation.
Result<std::vector<FlatCollective>> flat_forms(CollectiveKind kind, const Participants& group,
                                               const Parameters& parameters);
/// The same from a few members of a large group, for ranking: right in latency and idle rate where
/// the nodes' own links are the slowest; `loads` has a part of the links only.
/// \pre nodes with equal numbers of members are alike.
Result<std::vector<FlatCollective>> representative_forms(CollectiveKind kind,
                                                         const Participants& group,
                                                         const Parameters& parameters);
/// The one of `forms` with the least idle time for `bytes`; ties: the earlier one. This is the idea
/// of NCCL's tuner (ncclTopoGetAlgoTime and its caller in NCCL 2.28), with our times.
/// \pre !forms.empty()
std::size_t best_form(const std::vector<FlatCollective>& forms, Bytes bytes,
                      const ClusterView& cluster);
/// Whether the algorithm is made of messages between members: else switches add and copy, or
/// messages hold parts of several members, which the stepwise form cannot say.
/// \pre such an algorithm does `kind`
bool has_messages(std::string_view algorithm, CollectiveKind kind);
/// The stepwise form of one algorithm: all its rings or trees, links alone (no protocol). It puts
/// on every link what the flat form does.
/// \return kInvalidInput for an impossible group or if no such algorithm does `kind`; kInfeasible
///     where devices have no route; kUnsupported without messages, or if the group is too large to
///     write out.
Result<StepwiseCollective> stepwise_form(std::string_view algorithm, CollectiveKind kind,
                                         const Participants& group);

/// What one operation will do on idle links.
struct Forecast {
  FlatCollective form;
  Seconds time;
};
/// The form that `parameters` choose (choose.h) and its idle time.
/// \return As flat_forms; kInvalidInput if bytes < 0, or if a choice of `parameters` cannot be
///     obeyed.
Result<Forecast> predict(CollectiveKind kind, Bytes bytes, const Participants& group,
                         const Parameters& parameters);

}  // namespace foreshard::comm
