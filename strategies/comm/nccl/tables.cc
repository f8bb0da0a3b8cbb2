#include "strategies/comm/nccl/tables.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/check.h"

namespace foreshard::comm::nccl {
namespace {

std::string fault_in_order(const Tables& tables) {
  const auto& generations = tables.generations;
  for (std::size_t i = 0; i < generations.size(); ++i) {
    const auto& own = generations[i].compute_capability;
    if (i == 0 && own)
      return "the first is for all devices before the second; remove its compute_capability";
    if (i > 0 && !own) return "generations." + std::to_string(i) + " needs a compute_capability";
    if (i > 0 && own <= generations[i - 1].compute_capability)
      return "must ascend in compute_capability";
  }
  return {};
}

// The first compute capability for which NCCL runs LL128.
constexpr std::int64_t kFirstWithLl128 = 70;

std::string fault_in_ll128(const Generation& generation) {
  const bool has = generation.compute_capability.value_or(0) >= kFirstWithLl128;
  if (generation.ring_ll128.has_value() == has && generation.tree_ll128.has_value() == has)
    return {};
  return "NCCL runs LL128 from compute capability " + std::to_string(kFirstWithLl128) + " on; " +
         (has ? "give ring_ll128 and tree_ll128" : "remove ring_ll128 and tree_ll128");
}

// The latencies that NCCL's formulas read (estimate.cc). PAT has one member per node and uses the
// tree's latency between nodes; algorithms that sum in NVLink switches never cross PCIe inside a
// node.
struct LatencyTerms {
  std::string_view algorithm;
  bool base, nvlink, pcie, network;
  bool all_protocols = false;
};
constexpr std::array kReads{LatencyTerms{"tree", true, true, true, true, true},
                            LatencyTerms{"ring", true, true, true, true, true},
                            LatencyTerms{"collnet_direct", false, true, false, true},
                            LatencyTerms{"collnet_chain", false, true, true, true},
                            LatencyTerms{"nvls", false, true, false, true},
                            LatencyTerms{"nvls_tree", false, true, false, true},
                            LatencyTerms{"pat", true, false, false, false}};

const LatencyTerms* reads_of(std::string_view algorithm) {
  const auto found = std::ranges::find(kReads, algorithm, &LatencyTerms::algorithm);
  return found == kReads.end() ? nullptr : &*found;
}

std::string unknown_algorithm(const AlgorithmLatency& latency) {
  if (reads_of(latency.algorithm) != nullptr) return {};
  std::string legal;
  for (const LatencyTerms& each : kReads)
    legal += (legal.empty() ? "" : ", ") + std::string(each.algorithm);
  return "NCCL has no algorithm '" + latency.algorithm + "'; it has " + legal;
}

// LL128 runs where all hops inside the nodes are NVLinks.
std::string fault_in_protocols(const LatencyTerms& reads, const PerProtocol& times, bool is_pcie) {
  const auto fault = [](const char* protocol, bool given, bool read) -> std::string {
    if (given == read) return {};
    return protocol + std::string(read ? " is missing" : " is never read; remove it");
  };
  std::string text = fault("ll", times.ll.has_value(), reads.all_protocols);
  if (text.empty()) text = fault("ll128", times.ll128.has_value(), reads.all_protocols && !is_pcie);
  return text;
}

// Checks one of the four latencies: it must be given exactly if it is read.
auto checked(std::optional<PerProtocol> AlgorithmLatency::*member, bool LatencyTerms::*is_read,
             const char* key) {
  return [=](const AlgorithmLatency& latency) -> std::string {
    const LatencyTerms* reads = reads_of(latency.algorithm);
    const auto& times = latency.*member;
    if (reads == nullptr || (!times && !(reads->*is_read))) return {};
    const std::string what = "'" + latency.algorithm + "': " + key;
    if (!times) return what + " is missing";
    if (!(reads->*is_read)) return what + " is never read; remove it";
    const std::string fault = fault_in_protocols(*reads, *times, member == &AlgorithmLatency::pcie);
    return fault.empty() ? "" : what + "." + fault;
  };
}

std::string fault_in_algorithms(const Tables& tables) {
  for (const LatencyTerms& each : kReads) {
    const auto count =
        std::ranges::count(tables.latencies, each.algorithm, &AlgorithmLatency::algorithm);
    if (count != 1)
      return "must list each algorithm once; '" + std::string(each.algorithm) + "' is there " +
             std::to_string(count) + " times";
  }
  return {};
}

std::string fault_in_speeds(const std::vector<BytesPerSecond>& speeds) {
  const bool descends =
      std::adjacent_find(speeds.begin(), speeds.end(), std::less_equal<>()) == speeds.end();
  return descends ? "" : "must descend";
}

}  // namespace

const yaml::Table<PerProtocol>& yaml_table(const PerProtocol*) {
  static const auto table =
      yaml::Table<PerProtocol>("times by protocol", "One time for each protocol.")
          .optional("ll", &PerProtocol::ll, "LL; of rings and trees.", yaml::non_negative())
          .optional("ll128", &PerProtocol::ll128,
                    "LL128; of rings and trees, and not over PCIe, where NCCL does not use it.",
                    yaml::non_negative())
          .required("simple", &PerProtocol::simple, "Simple.", yaml::non_negative());
  return table;
}

const yaml::Table<AlgorithmLatency>& yaml_table(const AlgorithmLatency*) {
  using A = AlgorithmLatency;
  static const auto table =
      yaml::Table<A>("latencies of an algorithm",
                     "Latencies of its messages, independent of their size.")
          .required("algorithm", &A::algorithm, "ring, tree, nvls ...", yaml::non_empty())
          .optional("base", &A::base, "Latency of the whole operation, added once.")
          .optional("nvlink", &A::nvlink, "A message over NVLink.")
          .optional("pcie", &A::pcie, "A message over PCIe or shared memory.")
          .optional("network", &A::network, "A message between nodes.")
          .check("algorithm", unknown_algorithm)
          .check("base", checked(&A::base, &LatencyTerms::base, "base"))
          .check("nvlink", checked(&A::nvlink, &LatencyTerms::nvlink, "nvlink"))
          .check("pcie", checked(&A::pcie, &LatencyTerms::pcie, "pcie"))
          .check("network", checked(&A::network, &LatencyTerms::network, "network"));
  return table;
}

const yaml::Table<PerNodes>& yaml_table(const PerNodes*) {
  static const auto table =
      yaml::Table<PerNodes>("rates by number of nodes", "One, two, or more nodes.")
          .required("one", &PerNodes::one, "On one node.", yaml::non_negative())
          .required("two", &PerNodes::two, "On two nodes.", yaml::non_negative())
          .required("more", &PerNodes::more, "On more nodes.", yaml::non_negative());
  return table;
}

const yaml::Table<BetweenNodes>& yaml_table(const BetweenNodes*) {
  static const auto table =
      yaml::Table<BetweenNodes>("rates between nodes", "Two, or more nodes.")
          .required("two", &BetweenNodes::two, "On two nodes.", yaml::non_negative())
          .required("more", &BetweenNodes::more, "On more nodes.", yaml::non_negative());
  return table;
}

const yaml::Table<Doubling>& yaml_table(const Doubling*) {
  using D = Doubling;
  static const auto table =
      yaml::Table<D>("doubling", "When there are twice as many channels as rings were found.")
          .required("from", &D::from, "Speed from which a channel is split in two.",
                    yaml::positive())
          .optional("few_from", &D::few_from,
                    "The same where there are few channels. Default: none is split.",
                    yaml::positive())
          .optional("few", &D::few, "How many channels count as few.", yaml::at_least(1))
          .optional("network_above", &D::network_above,
                    "Between nodes the channels are doubled where each is faster than this ...",
                    yaml::positive())
          .optional("network_below", &D::network_below,
                    "... and there are fewer than this. Default: never.", yaml::at_least(1));
  return table;
}

const yaml::Table<Generation>& yaml_table(const Generation*) {
  using G = Generation;
  static const auto table =
      yaml::Table<G>("generation", "What depends on the generation of the GPUs.")
          .required("name", &G::name, "Which devices these are, for people.", yaml::non_empty())
          .optional("compute_capability", &G::compute_capability,
                    "Lowest compute capability of this generation: 10 x major + minor. The first "
                    "one has none: it is for all devices before the second.",
                    yaml::non_negative())
          .required("nvlink_nominal", &G::nvlink_nominal, "Rate of one NVLink by the data sheet.",
                    yaml::positive())
          .required("nvlink", &G::nvlink, "Rate that NCCL assumes for one NVLink.",
                    yaml::positive())
          .required("intra_speeds", &G::intra_speeds,
                    "Channel speeds that the search tries on one node, descending.",
                    yaml::non_empty())
          .required("inter_speeds", &G::inter_speeds,
                    "Channel speeds that the search tries on several nodes, descending.",
                    yaml::non_empty())
          .required("doubling", &G::doubling, "When channels are split in two.")
          .required("ll_most", &G::ll_most, "Bandwidth limit of LL, over all channels.")
          .optional("ring_ll128", &G::ring_ll128,
                    "Bandwidth limit of one channel of a ring with LL128.")
          .optional("tree_ll128", &G::tree_ll128,
                    "Bandwidth limit of one channel of a tree with LL128.")
          .required("tree", &G::tree, "Bandwidth limit of one channel of a tree.")
          .optional("nvls_tree", &G::nvls_tree,
                    "Bandwidth limit of one channel of NVLS with trees between nodes.")
          .optional("nvls_efficiency", &G::nvls_efficiency,
                    "Part of the links' rate that sums in the switch reach. Default: the switch "
                    "has no sums.",
                    yaml::non_negative(), yaml::at_most(1))
          .optional("nvls_channels", &G::nvls_channels, "Channels that NVLS takes on one node.",
                    yaml::non_negative())
          .optional("nvls_channels_multi_node", &G::nvls_channels_multi_node,
                    "Channels that NVLS takes on several nodes.", yaml::non_negative())
          .check("name", fault_in_ll128)
          .check("intra_speeds", [](const G& g) { return fault_in_speeds(g.intra_speeds); })
          .check("inter_speeds", [](const G& g) { return fault_in_speeds(g.inter_speeds); });
  return table;
}

const yaml::Table<TreeCorrection>& yaml_table(const TreeCorrection*) {
  static const auto table =
      yaml::Table<TreeCorrection>("tree correction",
                                  "Part of a tree's bandwidth; entry i from 64 x 2^i bytes on.")
          .required("ll", &TreeCorrection::ll, "LL.", yaml::positive())
          .required("ll128", &TreeCorrection::ll128, "LL128.", yaml::positive())
          .required("simple", &TreeCorrection::simple, "Simple.", yaml::positive());
  return table;
}

const yaml::Table<Threads>& yaml_table(const Threads*) {
  static const auto table =
      yaml::Table<Threads>("threads", "Most threads of one channel.")
          .required("ll", &Threads::ll, "LL.", yaml::at_least(1))
          .required("ll128", &Threads::ll128, "LL128.", yaml::at_least(1))
          .required("simple", &Threads::simple, "Simple.", yaml::at_least(1))
          .required("simple_slow_ring", &Threads::simple_slow_ring,
                    "Simple, in rings whose channels have at most 12 GB/s.", yaml::at_least(1))
          .required("tree_simple", &Threads::tree_simple, "Simple in trees and PAT.",
                    yaml::at_least(1));
  return table;
}

const yaml::Table<BytesPerThread>& yaml_table(const BytesPerThread*) {
  using B = BytesPerThread;
  static const auto table =
      yaml::Table<B>("bytes per thread", "Below which an operation gives up channels and threads.")
          .required("ll", &B::ll, "LL; in a ring times the number of members.", yaml::positive())
          .required("ll128", &B::ll128, "LL128.", yaml::positive())
          .required("simple", &B::simple, "Simple.", yaml::positive())
          .required("collnet", &B::collnet, "Sums in the network.", yaml::positive());
  return table;
}

const yaml::Table<Tables>& yaml_table(const Tables*) {
  using T = Tables;
  static const auto table =
      yaml::Table<T>("tuner", "Hardware as NCCL models it, and its tuner's constants.")
          .folder("tuners")
          .required("name", &T::name, "Name in reports.", yaml::non_empty())
          .required("source", &T::source, "Where the numbers are published.", yaml::non_empty())
          .required("latencies", &T::latencies, "Latencies by algorithm.", yaml::non_empty())
          .required("generations", &T::generations, "Generations of GPUs, ascending.",
                    yaml::non_empty())
          .required("tree_correction", &T::tree_correction,
                    "Corrections of tree bandwidth, by size.")
          .required("network_overhead", &T::network_overhead,
                    "Time of the network proxy per message.", yaml::non_negative())
          .required("pcie_3", &T::pcie_3, "16 lanes of PCIe 3.0.", yaml::positive())
          .required("pcie_through_socket", &T::pcie_through_socket,
                    "Weight of a byte that passes between devices through a CPU socket.",
                    yaml::at_least(1))
          .required("threads", &T::threads, "Most threads of one channel.")
          .required("bytes_per_thread", &T::bytes_per_thread, "Fewest bytes per thread.")
          .required("most_channels", &T::most_channels, "Most channels of a communicator.",
                    yaml::at_least(2))
          .required("least_speed", &T::least_speed,
                    "Part of the best speed so far below which the search gives up.",
                    yaml::positive(), yaml::at_most(1))
          .check("latencies", fault_in_algorithms)
          .check("generations", fault_in_order);
  return table;
}

const Generation& Tables::generation_of(std::int64_t compute_capability) const {
  FORESHARD_CHECK(!generations.empty());
  const Generation* found = &generations.front();
  for (const Generation& generation : generations)
    if (generation.compute_capability.value_or(0) <= compute_capability) found = &generation;
  return *found;
}

const AlgorithmLatency& Tables::latency_of(std::string_view algorithm) const {
  const auto found = std::ranges::find(latencies, algorithm, &AlgorithmLatency::algorithm);
  FORESHARD_CHECK(found != latencies.end());
  return *found;
}

}  // namespace foreshard::comm::nccl
