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

// src/graph/tuning.cc, v2.28.9: fractions of the search's bandwidth that protocols and algorithms
// reach.
constexpr double kLlOfRing = 0.5;
constexpr double kLl128OfRing = 0.92;
constexpr double kOfTree = 0.92;
constexpr double kLlOfTree = 1 / 3.8;
constexpr double kLl128OfTreeOneNode = 7.0 / 9.0;
constexpr double kLl128OfTree = 120.0 / 128.0;
constexpr double kOfPlainTree = 0.85;
constexpr double kOfPat = 0.75;
constexpr double kOfCollnetDirect = 0.85;  // since Hopper
constexpr double kOfCollnetDirectNetwork = 0.9;
constexpr double kCollnetGather = 0.4;  // a member's copies, in microseconds
constexpr double kPatPerMember = 2.8;   // microseconds
constexpr double kPatNetworkPart = 1 / 3.5;
constexpr double kOverheadSimple = 3;  // factor of a message's proxy overhead, against LL
constexpr double kLongRing = 1.4;      // latency of Simple rings between nodes
constexpr double kLongRingBeforeAmpere = 1.9;
constexpr double kLongRingBytes = 64;  // per channel and member: the least size of a long ring
constexpr double kSmallestTreeCorrection = 64;  // bytes
constexpr double kSlowRing = 12;                // GB/s per channel
constexpr std::int64_t kSmallestBlock = 128;    // threads
constexpr double kLeastBytesPerChannel = 16384;
constexpr std::int64_t kAmpere = 80;
constexpr std::int64_t kHopper = 90;
constexpr std::int64_t kMostNvlsMembers = 32;  // limit of a gather or scatter: the arity

struct Candidate {
  std::string_view algorithm;
  const SearchGraph* graph;
};

class Tuner {
 public:
  Tuner(CollectiveKind kind, Bytes bytes, const Communicator& communicator, const Tables& tables)
      : kind_(kind),
        bytes_(bytes),
        of_(communicator),
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
  bool one_node() const { return of_.nodes == 1; }
  bool is_all_reduce() const { return kind_ == CollectiveKind::kAllReduce; }

  // Section "what is enabled" of ncclTopoTuneModel, in the order in which ties are decided.
  std::vector<Candidate> candidates() const {
    std::vector<Candidate> list;
    const bool gathers =
        kind_ == CollectiveKind::kAllGather || kind_ == CollectiveKind::kReduceScatter;
    if (is_all_reduce()) list.push_back({"tree", &of_.tree});
    if (is_all_reduce() || gathers) list.push_back({"ring", &of_.ring});
    if (kind_ == CollectiveKind::kBroadcast) list.push_back({"chain", &of_.ring});
    if ((is_all_reduce() || gathers) && of_.has_collnet && of_.has_nvswitch)
      list.push_back({"collnet_direct", &of_.collnet_direct});
    if (is_all_reduce() && of_.has_collnet) list.push_back({"collnet_chain", &of_.collnet_chain});
    const bool fits = is_all_reduce() || of_.most_per_node <= kMostNvlsMembers;
    if ((is_all_reduce() || gathers) && fits && of_.nvls.channels > 1 &&
        (one_node() || of_.has_collnet))
      list.push_back({"nvls", &of_.nvls});
    if (is_all_reduce() && !one_node() && of_.nvls.channels > 1)
      list.push_back({"nvls_tree", &of_.nvls});
    if (gathers && of_.most_per_node == 1) list.push_back({"pat", &of_.ring});
    return list;
  }

  double by_nodes(const PerNodes& rates) const {
    const BytesPerSecond rate = one_node() ? rates.one : of_.nodes == 2 ? rates.two : rates.more;
    return rate / 1_GB_s;
  }

  bool ll128_works(const SearchGraph& graph) const {
    return generation_.ring_ll128 && generation_.tree_ll128 &&
           of_.least_capability == of_.most_capability && graph.intra_kind == LinkKind::kNvLink &&
           !graph.far_nic;
  }

  // Steps of a ring: the number of messages one after another.
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

  // Algorithm bandwidth, GB/s; 0 if this protocol is not enabled.
  double rate_of(const Candidate& candidate, Protocol protocol) const {
    const auto& [name, graph] = candidate;
    if (protocol == Protocol::kLl128 && !ll128_works(*graph)) return 0;
    const bool is_ring = name == "ring" || name == "chain";
    if (!is_ring && name != "tree" && protocol != Protocol::kSimple) return 0;
    const bool is_collnet = name.starts_with("collnet");
    const auto channels = static_cast<double>(graph->channels);
    const double intra = graph->intra_rate / 1_GB_s;
    const double inter = graph->inter_rate / 1_GB_s;
    double bus = channels * (of_.nodes <= 2 || is_collnet ? intra : inter);
    if (is_ring) {
      if (protocol == Protocol::kLl) bus = std::min(by_nodes(generation_.ll_most), bus * kLlOfRing);
      if (protocol == Protocol::kLl128)
        bus = std::min(bus * kLl128OfRing, channels * by_nodes(*generation_.ring_ll128));
      return bus * members_ / steps();
    }
    if (name == "tree") return tree_rate(bus, channels, protocol);
    if (name == "pat") return bus * kOfPat;
    if (name == "collnet_direct") return collnet_direct_rate(bus, channels, intra, inter);
    if (name == "collnet_chain") return bus / 2;
    return nvls_rate(name == "nvls_tree", channels, intra, inter);
  }

  double tree_rate(double bus, double channels, Protocol protocol) const {
    bus = std::min(bus * kOfTree, channels * by_nodes(generation_.tree));
    if (protocol == Protocol::kLl) bus = std::min(bus * kLlOfTree, by_nodes(generation_.ll_most));
    if (protocol == Protocol::kLl128)
      bus = std::min(bus * (one_node() ? kLl128OfTreeOneNode : kLl128OfTree),
                     channels * by_nodes(*generation_.tree_ll128));
    if (of_.most_per_node == 1) bus *= kOfPlainTree;
    return bus / 2 * tree_correction(protocol);
  }

  double tree_correction(Protocol protocol) const {
    const auto& factors = protocol == Protocol::kLl      ? tables_.tree_correction.ll
                          : protocol == Protocol::kLl128 ? tables_.tree_correction.ll128
                                                         : tables_.tree_correction.simple;
    const double units = bytes_ / 1_B / kSmallestTreeCorrection;
    if (units < 1) return 1;
    const auto index = static_cast<std::size_t>(std::log2(std::floor(units)));
    return index < factors.size() ? factors[index] : 1;
  }

  double collnet_direct_rate(double bus, double channels, double intra, double inter) const {
    double rate = 0;
    if (is_all_reduce()) {
      const double factor = per_node_ / channels;
      rate = bus / (factor - (factor - 1) / 2) / 2;
    } else {
      rate = per_node_ * std::min(intra, kOfCollnetDirectNetwork * inter);
    }
    return of_.least_capability >= kHopper ? rate * kOfCollnetDirect : rate;
  }

  double nvls_rate(bool is_tree, double channels, double intra, double inter) const {
    double inside = intra * generation_.nvls_efficiency * (channels - 1) / channels;
    if (is_all_reduce())
      inside *= 2;
    else
      inside *= (per_node_ - 1) / per_node_;
    const double between = inter * (is_tree && of_.nodes <= 2 ? 2 : 1);
    double channel = std::min(inside, between);
    const BetweenNodes& most = generation_.nvls_tree;
    if (is_tree) channel = std::min(channel, (of_.nodes == 2 ? most.two : most.more) / 1_GB_s);
    return channels * channel * members_ / steps();
  }

  // 0 where the algorithm has no such latency.
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
    const double inter = in_us((of_.most_per_node == 1 ? tree : own).network, protocol);
    const double base = in_us(own.base, protocol);
    if (is_ring) return ring_latency(base, intra, inter, protocol) * 1_us;
    if (name == "tree") return (base + 2 * ((per_node_ - 1) * intra + levels_ * inter)) * 1_us;
    if (name == "pat")
      return (base + levels_ * inter * kPatNetworkPart + kPatPerMember * members_) * 1_us;
    if (name == "collnet_direct")
      return (2 * (std::min(1.0, per_node_ - 1) * intra + (per_node_ - 1) * kCollnetGather) +
              inter) *
             1_us;
    if (name == "collnet_chain") return (2 * (per_node_ - 1) * intra + inter) * 1_us;
    if (name == "nvls_tree") return (intra + 2 * levels_ * inter) * 1_us;
    return (intra + (one_node() ? 0 : inter)) * 1_us;
  }

  double ring_latency(double base, double intra, double inter, Protocol protocol) const {
    const double overhead = one_node() ? 0
                                       : tables_.network_overhead / 1_us *
                                             (protocol == Protocol::kSimple ? kOverheadSimple : 1);
    intra = std::max(intra, overhead);
    if (kind_ == CollectiveKind::kBroadcast) {
      // All channels visit the members in one order where a switch joins them.
      const double message = one_node() ? intra : inter;
      return base + message * (one_node() && of_.has_nvswitch ? 1 : members_);
    }
    const double rounds = is_all_reduce() ? 2 : 1;
    const double between = one_node() ? 0 : rounds * (nodes_ - 1);
    double latency = base + (steps() - between) * intra + between * inter;
    if (protocol == Protocol::kSimple && is_all_reduce() && !one_node() &&
        bytes_ / 1_B >= kLongRingBytes * static_cast<double>(of_.channels) * members_)
      latency *= of_.least_capability >= kAmpere ? kLongRing : kLongRingBeforeAmpere;
    return latency;
  }

  // As topoGetAlgoInfo of enqueue.cc: reduces the channels, then the threads, until each has enough
  // bytes.
  std::int64_t channels_of(const Candidate& candidate, Protocol protocol) const {
    const std::string_view name = candidate.algorithm;
    std::int64_t channels = of_.channels;
    if (name.starts_with("nvls")) channels = std::max<std::int64_t>(1, of_.nvls_channels);
    if (name.starts_with("collnet")) channels = candidate.graph->channels;
    const bool slow = of_.ring.intra_rate / 1_GB_s <= kSlowRing;
    double threads =
        static_cast<double>(protocol == Protocol::kLl         ? tables_.threads.ll
                            : protocol == Protocol::kLl128    ? tables_.threads.ll128
                            : name == "tree" || name == "pat" ? tables_.threads.tree_simple
                            : slow                            ? tables_.threads.simple_slow_ring
                                                              : tables_.threads.simple);
    const auto& least = tables_.bytes_per_thread;
    double each = (protocol == Protocol::kLl      ? least.ll
                   : protocol == Protocol::kLl128 ? least.ll128
                   : name.starts_with("collnet")  ? least.collnet
                                                  : least.simple) /
                  1_B;
    if (protocol == Protocol::kLl && (name == "ring" || name == "chain")) each *= members_;
    const double bytes = bytes_ / 1_B;
    while (channels > 1 && bytes < static_cast<double>(channels) * threads * each) --channels;
    while (threads > kSmallestBlock && bytes < static_cast<double>(channels) * threads * each &&
           std::fmod(threads / 2, kSmallestBlock) == 0)
      threads /= 2;
    const double most = std::ceil(bytes / kLeastBytesPerChannel);
    if (most < static_cast<double>(channels)) channels = static_cast<std::int64_t>(most);
    return std::max<std::int64_t>(1, channels);
  }

  CollectiveKind kind_;
  Bytes bytes_;
  const Communicator& of_;
  const Tables& tables_;
  const Generation& generation_;
  double members_;
  double nodes_;
  double per_node_;
  double levels_;
};

}  // namespace

std::vector<Estimate> estimates(CollectiveKind kind, Bytes bytes, const Communicator& communicator,
                                const Tables& tables) {
  FORESHARD_CHECK(bytes >= 0_B);
  if (communicator.members < 2) return {};
  return Tuner(kind, bytes, communicator, tables).run();
}

}  // namespace foreshard::comm::nccl
