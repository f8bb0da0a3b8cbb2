#include "strategies/comm/nccl/tables.h"

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace foreshard::comm::nccl {
namespace {

std::string fault_in_order(const Tables& tables) {
  const bool ascends = std::is_sorted(
      tables.generations.begin(), tables.generations.end(),
      [](const auto& a, const auto& b) { return a.compute_capability < b.compute_capability; });
  return ascends ? "" : "must ascend in compute_capability";
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
          .required("ll", &PerProtocol::ll, "LL.", yaml::non_negative())
          .required("ll128", &PerProtocol::ll128, "LL128.", yaml::non_negative())
          .required("simple", &PerProtocol::simple, "Simple.", yaml::non_negative());
  return table;
}

const yaml::Table<AlgorithmLatency>& yaml_table(const AlgorithmLatency*) {
  using A = AlgorithmLatency;
  static const auto table =
      yaml::Table<A>("latencies of an algorithm",
                     "Latencies of its messages, independent of their size.")
          .required("algorithm", &A::algorithm, "ring, tree, nvls ...", yaml::non_empty())
          .required("base", &A::base, "Latency of the whole operation, added once.")
          .required("nvlink", &A::nvlink, "A message over NVLink.")
          .required("pcie", &A::pcie, "A message over PCIe or shared memory.")
          .required("network", &A::network, "A message between nodes.");
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
          .required("name", &G::name, "Name in reports.", yaml::non_empty())
          .required("compute_capability", &G::compute_capability,
                    "Lowest compute capability of this generation: 10 x major + minor.",
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
          .required("ring_ll128", &G::ring_ll128,
                    "Bandwidth limit of one channel of a ring with LL128.")
          .required("tree_ll128", &G::tree_ll128,
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
          .check("generations", fault_in_order);
  return table;
}

const Generation& Tables::generation_of(std::int64_t compute_capability) const {
  FORESHARD_CHECK(!generations.empty());
  const Generation* found = &generations.front();
  for (const Generation& generation : generations)
    if (generation.compute_capability <= compute_capability) found = &generation;
  return *found;
}

const AlgorithmLatency* Tables::latency_of(std::string_view algorithm) const {
  const auto found =
      std::find_if(latencies.begin(), latencies.end(),
                   [&](const AlgorithmLatency& latency) { return latency.algorithm == algorithm; });
  return found == latencies.end() ? nullptr : &*found;
}

}  // namespace foreshard::comm::nccl
