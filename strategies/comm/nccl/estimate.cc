// NCCL's cost model, reimplemented: the time that its tuner expects of each algorithm and protocol.
// The choice of an algorithm (comm/choose.cc) takes the fastest estimate; the table of `topology
// collectives` (comm/sweep.cc) shows all estimates. Inside this file, rates are GB/s and latencies
// are microseconds, as in NCCL.
#include "strategies/comm/nccl/estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/check.h"

namespace foreshard::comm::nccl {
namespace {

using program::CollectiveKind;

// Constants of src/graph/tuning.cc, v2.28.9. An efficiency is the fraction that an algorithm or
// protocol reaches of the bandwidth that NCCL's graph search found; the efficiency of a protocol
// multiplies the efficiency of its algorithm.
constexpr double kRingLlEfficiency = 0.5;
constexpr double kRingLl128Efficiency = 0.92;
constexpr double kTreeEfficiency = 0.92;
constexpr double kTreeLlEfficiency = 1 / 3.8;
constexpr double kTreeLl128EfficiencyOneNode = 7.0 / 9.0;
constexpr double kTreeLl128Efficiency = 120.0 / 128.0;
constexpr double kPlainTreeEfficiency = 0.85;  // trees over nodes of one member each
constexpr double kPatEfficiency = 0.75;
constexpr double kCollnetDirectEfficiency = 0.85;  // on Hopper and later GPUs
constexpr double kCollnetDirectNetworkEfficiency = 0.9;
constexpr double kCollnetSerialization = 0.4;  // us for each other member of the node
constexpr double kPatPerMember = 2.8;          // us for each member
constexpr double kPatNetworkFactor = 1 / 3.5;  // factor of a network message's latency
constexpr double kSimpleOverheadFactor = 3;  // factor of a message's proxy overhead, relative to LL
// The latency of a large all-reduce by Simple rings between nodes is multiplied by this factor
// (NCCL: "plateau effect of ring").
constexpr double kLargeRingLatency = 1.4;
constexpr double kLargeRingLatencyBeforeAmpere = 1.9;
// Such an all-reduce is large from this number of bytes per (channel x member) on.
constexpr double kLargeRingBytes = 64;
// Size of an operation, in bytes, to which the first entry of the tree correction belongs; each
// further entry belongs to twice the size (TreeCorrection, tables.h).
constexpr double kTreeCorrectionStart = 64;
constexpr double kSlowRing = 12;  // GB/s per channel
constexpr double kLeastBytesPerChannel = 16384;
constexpr std::int64_t kAmpere = 80;  // compute capability: 10 x major + minor
constexpr std::int64_t kHopper = 90;
// Largest number of members per node for all-gathers and reduce-scatters by NVLS
// (NCCL_MAX_NVLS_ARITY).
constexpr std::int64_t kMostNvlsMembers = 32;

// An enabled algorithm, and the result of NCCL's search for the channels on which it would run.
struct Candidate {
  std::string_view algorithm;
  const SearchGraph* graph;
};

// NCCL's cost table for one operation.
class Tuner {
 public:
  Tuner(CollectiveKind kind, Bytes bytes, const Communicator& communicator, const Tables& tables)
      : kind_(kind),
        bytes_(bytes),
        communicator_(communicator),
        tables_(tables),
        generation_(tables.generation_of(communicator.least_capability)),
        members_(static_cast<double>(communicator.members)),
        nodes_(static_cast<double>(communicator.nodes)),
        per_node_(members_ / nodes_),
        levels_(std::floor(std::log2(nodes_))) {}

  std::vector<Estimate> run() const {
    std::vector<Estimate> found;
    for (const Candidate& candidate : candidates()) {
      if (candidate.graph->channels < 1) continue;
      for (const Protocol protocol : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple}) {
        const double rate = rate_of(candidate, protocol);
        if (!(rate > 0)) continue;
        found.push_back({candidate.algorithm, protocol, channels_of(candidate, protocol),
                         latency_of(candidate, protocol) + bytes_ / (rate * 1_GB_s)});
      }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Estimate& a, const Estimate& b) { return a.time < b.time; });
    return found;
  }

 private:
  bool one_node() const { return communicator_.nodes == 1; }
  bool is_all_reduce() const { return kind_ == CollectiveKind::kAllReduce; }

  // Section "what is enabled" of ncclTopoTuneModel, in NCCL's order: of equally fast
  // algorithms the first is taken.
  std::vector<Candidate> candidates() const {
    std::vector<Candidate> list;
    const bool gathers =
        kind_ == CollectiveKind::kAllGather || kind_ == CollectiveKind::kReduceScatter;
    if (is_all_reduce()) list.push_back({"tree", &communicator_.tree});
    if (is_all_reduce() || gathers) list.push_back({"ring", &communicator_.ring});
    // A chain is a broadcast along a ring: it uses the ring's channels, constants and latencies.
    if (kind_ == CollectiveKind::kBroadcast) list.push_back({"chain", &communicator_.ring});
    if ((is_all_reduce() || gathers) && communicator_.has_collnet && communicator_.has_nvswitch)
      list.push_back({"collnet_direct", &communicator_.collnet_direct});
    if (is_all_reduce() && communicator_.has_collnet)
      list.push_back({"collnet_chain", &communicator_.collnet_chain});
    const bool fits = is_all_reduce() || communicator_.most_per_node <= kMostNvlsMembers;
    if ((is_all_reduce() || gathers) && fits && communicator_.nvls.channels > 1 &&
        (one_node() || communicator_.has_collnet))
      list.push_back({"nvls", &communicator_.nvls});
    if (is_all_reduce() && !one_node() && communicator_.nvls.channels > 1)
      list.push_back({"nvls_tree", &communicator_.nvls});
    if (gathers && communicator_.most_per_node == 1) list.push_back({"pat", &communicator_.ring});
    return list;
  }

  // The rate, in GB/s, for the communicator's number of nodes.
  double by_nodes(const PerNodes& rates) const {
    const BytesPerSecond rate = one_node()                 ? rates.one
                                : communicator_.nodes == 2 ? rates.two
                                                           : rates.more;
    return rate / 1_GB_s;
  }

  bool ll128_works(const SearchGraph& graph) const {
    return generation_.ring_ll128 && generation_.tree_ll128 &&
           communicator_.least_capability == communicator_.most_capability &&
           graph.intra_kind == LinkKind::kNvLink && !graph.far_nic;
  }

  // Number of steps of a ring: of messages that follow one another.
  double steps() const {
    switch (kind_) {
      case CollectiveKind::kAllReduce:
        return 2 * (members_ - 1);
      case CollectiveKind::kBroadcast:
        return members_;
      default:
        return members_ - 1;
    }
  }

  // Algorithm bandwidth (bytes of the operation per time), GB/s; 0 if this protocol is not enabled.
  // Here and below, `bus` is the rate of all channels together, `intra` and `inter` the rates of
  // one channel inside a node and between nodes.
  double rate_of(const Candidate& candidate, Protocol protocol) const {
    const auto& [name, graph] = candidate;
    if (protocol == Protocol::kLl128 && !ll128_works(*graph)) return 0;
    const bool is_ring = name == "ring" || name == "chain";
    if (!is_ring && name != "tree" && protocol != Protocol::kSimple) return 0;
    const bool is_collnet = name.starts_with("collnet");
    const auto channels = static_cast<double>(graph->channels);
    const double intra = graph->intra_rate / 1_GB_s;
    const double inter = graph->inter_rate / 1_GB_s;
    double bus = channels * (communicator_.nodes <= 2 || is_collnet ? intra : inter);
    if (is_ring) {
      if (protocol == Protocol::kLl)
        bus = std::min(by_nodes(generation_.ll_most), bus * kRingLlEfficiency);
      if (protocol == Protocol::kLl128)
        bus = std::min(bus * kRingLl128Efficiency, channels * by_nodes(*generation_.ring_ll128));
      return bus * members_ / steps();
    }
    if (name == "tree") return tree_rate(bus, channels, protocol);
    if (name == "pat") return bus * kPatEfficiency;
    if (name == "collnet_direct") return collnet_direct_rate(bus, channels, intra, inter);
    if (name == "collnet_chain") return bus / 2;
    return nvls_rate(name == "nvls_tree", channels, intra, inter);
  }

  double tree_rate(double bus, double channels, Protocol protocol) const {
    bus = std::min(bus * kTreeEfficiency, channels * by_nodes(generation_.tree));
    if (protocol == Protocol::kLl)
      bus = std::min(bus * kTreeLlEfficiency, by_nodes(generation_.ll_most));
    if (protocol == Protocol::kLl128)
      bus = std::min(bus * (one_node() ? kTreeLl128EfficiencyOneNode : kTreeLl128Efficiency),
                     channels * by_nodes(*generation_.tree_ll128));
    if (communicator_.most_per_node == 1) bus *= kPlainTreeEfficiency;
    return bus / 2 * tree_correction(protocol);
  }

  // Factor on a tree's bandwidth at this size; 1 for sizes that the table does not cover.
  double tree_correction(Protocol protocol) const {
    const auto& factors = protocol == Protocol::kLl      ? tables_.tree_correction.ll
                          : protocol == Protocol::kLl128 ? tables_.tree_correction.ll128
                                                         : tables_.tree_correction.simple;
    const double units = bytes_ / 1_B / kTreeCorrectionStart;
    if (units < 1) return 1;
    const auto index = static_cast<std::size_t>(std::log2(std::floor(units)));
    return index < factors.size() ? factors[index] : 1;
  }

  double collnet_direct_rate(double bus, double channels, double intra, double inter) const {
    double rate = 0;
    if (is_all_reduce()) {
      // Every channel has a head, the member next to its NIC. NCCL divides the rate
      // by (m + 1) / 2 for m members per channel: by more than 1 where members share heads.
      const double members_per_channel = per_node_ / channels;
      rate = bus / (members_per_channel - (members_per_channel - 1) / 2) / 2;
    } else {
      rate = per_node_ * std::min(intra, kCollnetDirectNetworkEfficiency * inter);
    }
    return communicator_.least_capability >= kHopper ? rate * kCollnetDirectEfficiency : rate;
  }

  double nvls_rate(bool is_tree, double channels, double intra, double inter) const {
    double inside = intra * generation_.nvls_efficiency * (channels - 1) / channels;
    if (is_all_reduce())
      inside *= 2;
    else
      inside *= (per_node_ - 1) / per_node_;
    const double between = inter * (is_tree && communicator_.nodes <= 2 ? 2 : 1);
    double channel = std::min(inside, between);
    const BetweenNodes& limit = generation_.nvls_tree;
    if (is_tree)
      channel = std::min(channel, (communicator_.nodes == 2 ? limit.two : limit.more) / 1_GB_s);
    return channels * channel * members_ / steps();
  }

  // The latency of this protocol in microseconds; 0 where the table has none.
  static double in_us(const std::optional<PerProtocol>& times, Protocol protocol) {
    if (!times) return 0;
    const Seconds time = protocol == Protocol::kLl      ? times->ll.value_or(0_s)
                         : protocol == Protocol::kLl128 ? times->ll128.value_or(0_s)
                                                        : times->simple;
    return time / 1_us;
  }

  Seconds latency_of(const Candidate& candidate, Protocol protocol) const {
    const auto& [name, graph] = candidate;
    const bool is_ring = name == "ring" || name == "chain";
    const AlgorithmLatency& own = tables_.latency_of(is_ring ? "ring" : name);
    const AlgorithmLatency& tree = tables_.latency_of("tree");
    const double intra =
        in_us(graph->intra_kind == LinkKind::kNvLink ? own.nvlink : own.pcie, protocol);
    // With one member per node NCCL takes the tree's network latency for every algorithm.
    const double inter = in_us((communicator_.most_per_node == 1 ? tree : own).network, protocol);
    const double base = in_us(own.base, protocol);
    if (is_ring) return ring_latency(base, intra, inter, protocol) * 1_us;
    if (name == "tree") return (base + 2 * ((per_node_ - 1) * intra + levels_ * inter)) * 1_us;
    if (name == "pat")
      return (base + levels_ * inter * kPatNetworkFactor + kPatPerMember * members_) * 1_us;
    // On the way to the heads and on the way back: one message, if the node has other members, and
    // the time in which they take turns.
    if (name == "collnet_direct")
      return (2 * (std::min(1.0, per_node_ - 1) * intra + (per_node_ - 1) * kCollnetSerialization) +
              inter) *
             1_us;
    if (name == "collnet_chain") return (2 * (per_node_ - 1) * intra + inter) * 1_us;
    if (name == "nvls_tree") return (intra + 2 * levels_ * inter) * 1_us;
    return (intra + (one_node() ? 0 : inter)) * 1_us;
  }

  // The latency of a ring or chain, in microseconds, from the latency of its start (`base`), of a
  // message inside a node (`intra`) and of a message between nodes (`inter`).
  double ring_latency(double base, double intra, double inter, Protocol protocol) const {
    const double overhead = one_node()
                                ? 0
                                : tables_.network_overhead / 1_us *
                                      (protocol == Protocol::kSimple ? kSimpleOverheadFactor : 1);
    intra = std::max(intra, overhead);
    if (kind_ == CollectiveKind::kBroadcast) {
      // Where a switch joins the members, all channels visit them in the same order (NCCL's
      // sameChannels). NCCL then counts one message, otherwise one for each member.
      const double message = one_node() ? intra : inter;
      return base + message * (one_node() && communicator_.has_nvswitch ? 1 : members_);
    }
    const double rounds = is_all_reduce() ? 2 : 1;
    const double between = one_node() ? 0 : rounds * (nodes_ - 1);
    double latency = base + (steps() - between) * intra + between * inter;
    if (protocol == Protocol::kSimple && is_all_reduce() && !one_node() &&
        bytes_ / 1_B >= kLargeRingBytes * static_cast<double>(communicator_.channels) * members_)
      latency *= communicator_.least_capability >= kAmpere ? kLargeRingLatency
                                                           : kLargeRingLatencyBeforeAmpere;
    return latency;
  }

  // The channels of an operation of this size: all that the search found, less as many as it takes
  // for each thread of each channel to have enough bytes. Follows topoGetAlgoInfo of enqueue.cc,
  // which then also halves the threads; their number is not needed here.
  std::int64_t channels_of(const Candidate& candidate, Protocol protocol) const {
    const std::string_view name = candidate.algorithm;
    std::int64_t channels = communicator_.channels;
    if (name.starts_with("nvls")) channels = std::max<std::int64_t>(1, communicator_.nvls_channels);
    if (name.starts_with("collnet")) channels = candidate.graph->channels;
    const bool slow = communicator_.ring.intra_rate / 1_GB_s <= kSlowRing;
    const double threads =
        static_cast<double>(protocol == Protocol::kLl         ? tables_.threads.ll
                            : protocol == Protocol::kLl128    ? tables_.threads.ll128
                            : name == "tree" || name == "pat" ? tables_.threads.tree_simple
                            : slow                            ? tables_.threads.simple_slow_ring
                                                              : tables_.threads.simple);
    const auto& minimum = tables_.bytes_per_thread;
    double bytes_per_thread = (protocol == Protocol::kLl      ? minimum.ll
                               : protocol == Protocol::kLl128 ? minimum.ll128
                               : name.starts_with("collnet")  ? minimum.collnet
                                                              : minimum.simple) /
                              1_B;
    if (protocol == Protocol::kLl && (name == "ring" || name == "chain"))
      bytes_per_thread *= members_;
    const double bytes = bytes_ / 1_B;
    const auto too_many = [&] {
      return bytes < static_cast<double>(channels) * threads * bytes_per_thread;
    };
    while (channels > 1 && too_many()) --channels;
    const double limit = std::ceil(bytes / kLeastBytesPerChannel);
    if (limit < static_cast<double>(channels)) channels = static_cast<std::int64_t>(limit);
    return std::max<std::int64_t>(1, channels);
  }

  CollectiveKind kind_;
  Bytes bytes_;
  const Communicator& communicator_;
  const Tables& tables_;
  const Generation& generation_;
  double members_;   // members of the communicator
  double nodes_;     // nodes that they are on
  double per_node_;  // members per node, on average
  double levels_;    // depth of a binary tree of the nodes: floor(log2(nodes))
};

}  // namespace

std::vector<Estimate> estimates(CollectiveKind kind, Bytes bytes, const Communicator& communicator,
                                const Tables& tables) {
  FORESHARD_CHECK(bytes >= 0_B);
  if (communicator.members < 2) return {};
  return Tuner(kind, bytes, communicator, tables).run();
}

}  // namespace foreshard::comm::nccl
