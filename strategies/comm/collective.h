/// \file
/// The load that a collective puts on a cluster's links: algorithms as data. An algorithm turns a
/// group of devices into
///   - a *flat* form: one activity with a weight on each link and a latency (the default in steps);
///   - a *stepwise* form: every message of every step, as flows with dependencies; the time before
///     bytes flow is the flat form's;
///   - a *closed form*: latency + bytes / bandwidth, which the flat form equals on idle links.
/// To add an algorithm, write its .cc, its declaration in algorithms.h and one line in registry.cc.
/// collective_contract_test.cc then checks the rules that all algorithms obey.
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
#include "strategies/program/ir/program.h"
#include "topology/cluster_view.h"

namespace foreshard::comm {

using program::CollectiveKind;
using program::name_of;

/// One message of an exchange, from one member to another.
struct Transfer {
  std::int32_t from = 0;  ///< Index into Participants::devices.
  std::int32_t to = 0;
  double part = 0;  ///< Fraction of the operation's bytes. Invariant: > 0.
  /// Number of messages that this one stands for, one after another. Invariant: >= 1.
  double messages = 1;
};

/// The devices of one group, in rank order, and the cluster that they are in.
struct Participants {
  const ClusterView* cluster = nullptr;
  std::vector<DeviceId> devices;  ///< Distinct, at least 1. For a transfer: sender, receiver.
  std::uint64_t flow = 0;         ///< Identifies the group's flows for kEcmpHash.
  std::int32_t root = 0;          ///< The member that has the data of a broadcast.
  /// Channels of a transfer across the network, where its communicator has fewer per peer than the
  /// form (nccl/peer_channels.h); 0: the form's.
  std::int64_t peer_channels = 0;
  /// The messages of an exchange; empty for every other operation.
  std::vector<Transfer> transfers{};
  /// The routing of a token_exchange; empty for every other operation.
  std::optional<program::TokenRouting> routing{};
};

struct LinkLoad {
  LinkId link;
  double bytes_per_byte = 0;  ///< Bytes that cross the link per byte of the operation.
};

/// Time, besides the latency, that an operation loses before its bytes flow at their full rate.
///
///  - A pipelined algorithm (chain, tree, an all-to-all through buffers) sends chunks; the last
///    chunk ends `fill_chunks` chunk times after an unpipelined operation would.
///  - Short operations use fewer channels, since each takes at least `channel_bytes`. `channels`
///    channels carry the full rate (fewer than the form has where a link is slower than all of
///    them), so B bytes take as long as max(B, channels x min(B, channel_bytes)) at that rate.
///  - Long messages wait until the receiver asks for them: `rendezvous` x B / (B + eager_bytes).
struct StartUp {
  double fill_chunks = 0;
  Bytes chunk;  ///< Largest chunk of a pipeline.
  /// Channels that carry the full rate: the full rate over one channel's. Invariant: > 0.
  double channels = 1;
  Bytes channel_bytes;
  Seconds rendezvous;
  Bytes eager_bytes = 1_B;
  /// Extra time of operations with short messages: of at most `inject_bytes` bytes.
  Seconds inject;
  /// Largest operation, in bytes, that pays `inject`; one without bytes does not.
  Bytes inject_bytes;
  Seconds empty;  ///< Time that an operation without bytes saves.
  /// Largest operation for which the protocol is used while another one is available.
  Bytes most_bytes = Bytes::from_base(std::numeric_limits<double>::infinity());

  /// The lost time, given the full rate. delay + bytes / rate never falls as bytes grow, except
  /// just beyond `inject_bytes`.
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
/// Index of the fastest curve for `bytes` among those whose protocol is used for that size
/// (StartUp::most_bytes), or among all if there are none; ties: the earlier.
/// \pre !curves.empty()
std::size_t least_of(const std::vector<TimeCurve>& curves, Bytes bytes);

/// Fraction of each kind of link that a protocol can use by itself, and the limit of the root
/// complex.
struct LinkEfficiency {
  double nvlink = 1;
  double pcie = 1;  ///< PCIe, and links between sockets.
  double network = 1;
  /// Bytes of the operation per second through the root complex.
  BytesPerSecond through_host = BytesPerSecond::from_base(std::numeric_limits<double>::infinity());

  double of(LinkKind kind) const;
};

/// The flat form of one operation on one group, for any size.
struct FlatCollective {
  std::string_view algorithm;   ///< "ring", "tree", ... Static storage.
  std::string_view protocol;    ///< "LL", "LL128", "Simple"; "": none. Static storage.
  Seconds latency;              ///< All steps, without the bytes.
  std::vector<LinkLoad> loads;  ///< Ascending LinkId.
  double channels = 1;     ///< CTAs that carry the operation; each occupies one SM of every member.
  double connections = 1;  ///< Channels x queue pairs on the most loaded link.
  /// Fraction of each member's SMs that is occupied while the operation runs.
  double sm_share = 0;
  /// Fraction of each link's bandwidth that the form uses. One number for all links, set so that
  /// the slowest kind of link, each kind with its own efficiency, determines the rate on idle
  /// links.
  double bandwidth_fraction = 1;
  LinkEfficiency efficiency{};  ///< Per kind of link; bandwidth_fraction follows from it.
  /// Most bytes of the operation per second, whatever the links: the rate at which its channels
  /// copy.
  BytesPerSecond rate_cap = BytesPerSecond::from_base(std::numeric_limits<double>::infinity());
  StartUp start;
  bool measured = false;  ///< The time is a MeasuredCollective's.
  /// The algorithm runs in rounds that wait for one another, but this form puts the bytes of all
  /// rounds on the links at once: the times of links that are busy in different rounds do not add
  /// up.
  bool overlaps_rounds = false;
  double detour = 0;  ///< Fraction of all its flows that takes detours (Route::taken).

  /// Bytes per second on idle links: min(rate_cap, min over links of fraction x bandwidth / load).
  BytesPerSecond idle_rate(const ClusterView& cluster) const;
  /// Time before the bytes flow at the idle rate: latency + start.delay.
  Seconds delay(Bytes bytes, const ClusterView& cluster) const;
  /// The link that limits the idle rate, given the efficiency of its kind; the lowest LinkId of
  /// several. Invalid if the channels or the root complex limit it.
  LinkId bottleneck(const ClusterView& cluster) const;
  /// Time on idle links: delay + bytes / idle rate.
  Seconds idle_time(Bytes bytes, const ClusterView& cluster) const;
  TimeCurve curve(const ClusterView& cluster) const;
};

/// One message of the stepwise form. It carries `chunk_count` chunks of the sender's working buffer
/// (all_to_all: its send buffer): first_chunk, first_chunk + chunk_step, ... modulo `chunks`.
/// StepwiseCollective::chunks says into how many equal chunks the buffer is cut.
struct Message {
  std::int32_t from = 0;  ///< Index into Participants::devices.
  std::int32_t to = 0;
  double part = 0;  ///< Fraction of the operation's bytes: chunk_count / chunks.
  Seconds latency;  ///< The wire's. The latency of the whole operation is in FlatCollective::delay.
  std::vector<std::int32_t> after;  ///< Earlier messages that it waits for, by index.
  std::int32_t first_chunk = 0;
  std::int32_t chunk_count = 1;
  std::int32_t chunk_step = 1;
  /// The receiver adds the message to its own data; else it overwrites that.
  bool reduces = false;
};
struct StepwiseCollective {
  std::string_view algorithm;
  std::int32_t chunks = 1;
  /// A message forwards the data of the messages in `after` while these still arrive, piece by
  /// piece: all of them are under way together. The time to fill the pipeline is in
  /// FlatCollective::delay.
  bool pipelined = false;
  bool between_peers = false;  ///< Messages are sends, which use ClusterView::peer_route().
  std::vector<Message> messages;

  /// The route of one message.
  /// \return As ClusterView::route.
  Result<Route> route_of(const Message& message, const Participants& group) const;
};

/// All (algorithm, protocol) forms that this operation can use on this group, in the registry's
/// order, then in the order of `parameters.forms`; forms `on_request` only if a choice names them.
/// A group of one device has one form; it costs nothing, except for operations with the host
/// (host_copy.h).
/// \return kInvalidInput for an impossible group, kInfeasible where devices have no route,
///     kUnsupported if `parameters` has no form for the operation.
Result<std::vector<FlatCollective>> flat_forms(CollectiveKind kind, const Participants& group,
                                               const Parameters& parameters);
/// flat_forms derived from a few members of a large group, for ranking: latency and idle rate are
/// right where the nodes' own links are the slowest; `loads` has only some of the links.
/// \pre nodes with equal numbers of members are identical
Result<std::vector<FlatCollective>> representative_forms(CollectiveKind kind,
                                                         const Participants& group,
                                                         const Parameters& parameters);
/// Index of the form with the least idle time for `bytes`, as least_of chooses it; ties: the
/// earlier one. This is the idea of NCCL's tuner (ncclTopoGetAlgoTime and its caller in NCCL 2.28),
/// with the times predicted here.
/// \pre !forms.empty()
std::size_t best_form(const std::vector<FlatCollective>& forms, Bytes bytes,
                      const ClusterView& cluster);
/// Whether the algorithm is made of messages between members. If not, switches add and copy, or
/// messages hold data of several members, which the stepwise form cannot express.
/// \pre an algorithm of this name does `kind`
bool has_messages(std::string_view algorithm, CollectiveKind kind);
/// The stepwise form of one algorithm: all its rings or trees, links alone (no protocol). It puts
/// the same load on every link as the flat form.
/// \return kInvalidInput for an impossible group or if no such algorithm does `kind`; kInfeasible
///     where devices have no route; kUnsupported without messages, or if the group is too large to
///     write out.
Result<StepwiseCollective> stepwise_form(std::string_view algorithm, CollectiveKind kind,
                                         const Participants& group);

/// The prediction for one operation on idle links.
struct OperationPrediction {
  FlatCollective form;
  Seconds time;
};
/// The form that `parameters` choose (choose.h) and its idle time.
/// \return As flat_forms; kInvalidInput if bytes < 0, or if a choice of `parameters` cannot be
///     followed.
Result<OperationPrediction> predict(CollectiveKind kind, Bytes bytes, const Participants& group,
                                    const Parameters& parameters);

}  // namespace foreshard::comm
