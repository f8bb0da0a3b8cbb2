/// \file
/// NCCL's figures for hardware and for itself, as data (configs/tuners/nccl-2.28.yaml): the speeds
/// that its graph search tries, the bandwidth that it assumes for links, and the constants of its
/// tuner.
///
/// Source: NVIDIA/nccl v2.28.9-1, src/graph/{search,topo,tuning}.{cc,h}, src/include/comm.h. These
/// are facts about that library, not measurements of any machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "base/yaml/table.h"

namespace foreshard::comm::nccl {

/// One time per protocol; LL or LL128 is empty where NCCL does not run it.
struct PerProtocol {
  std::optional<Seconds> ll;
  std::optional<Seconds> ll128;
  Seconds simple;
};
const yaml::Table<PerProtocol>& yaml_table(const PerProtocol*);

/// Latencies of an algorithm: its start, and each message by the kind of link that it crosses.
/// NCCL's tables have zeros and numbers that its formulas never read; here each algorithm has
/// exactly the numbers that are read.
struct AlgorithmLatency {
  std::string algorithm;  ///< "tree", "ring", "collnet_direct" ...
  std::optional<PerProtocol> base;
  std::optional<PerProtocol> nvlink;
  std::optional<PerProtocol> pcie;
  std::optional<PerProtocol> network;
};
const yaml::Table<AlgorithmLatency>& yaml_table(const AlgorithmLatency*);

/// Rates by number of nodes: one, two, more.
struct PerNodes {
  BytesPerSecond one;
  BytesPerSecond two;
  BytesPerSecond more;
};
const yaml::Table<PerNodes>& yaml_table(const PerNodes*);

/// Rates by number of nodes, for algorithms that cannot run on one node.
struct BetweenNodes {
  BytesPerSecond two;
  BytesPerSecond more;
};
const yaml::Table<BetweenNodes>& yaml_table(const BetweenNodes*);

/// Conditions under which rings and chains are split into twice as many channels.
struct Doubling {
  /// Speed from which channels are doubled (at half the speed), whatever their number.
  BytesPerSecond from;
  /// Speed from which channels are doubled where there are at most `few`.
  BytesPerSecond few_from;
  std::int64_t few = 0;  ///< Number of channels up to which `few_from` applies.
  /// Between nodes, a communicator doubles its channels again if they are faster than this ...
  BytesPerSecond network_above;
  std::int64_t network_below = 0;  ///< ... and fewer than this. 0: never.
};
const yaml::Table<Doubling>& yaml_table(const Doubling*);

/// Figures that depend on the GPUs' generation.
struct Generation {
  std::string name;  ///< Display name.
  /// Least compute capability. Empty: the first generation, which covers all before the second.
  std::optional<std::int64_t> compute_capability{};
  BytesPerSecond nvlink_nominal;             ///< One link's rate by the data sheet.
  BytesPerSecond nvlink;                     ///< One link's rate as NCCL assumes it.
  std::vector<BytesPerSecond> intra_speeds;  ///< Descending.
  std::vector<BytesPerSecond> inter_speeds;
  Doubling doubling;
  PerNodes ll_most;                    ///< Limit of LL for all channels together.
  std::optional<PerNodes> ring_ll128;  ///< One channel's rate. Empty where NCCL has no LL128.
  std::optional<PerNodes> tree_ll128;  ///< One channel's rate. Empty where NCCL has no LL128.
  PerNodes tree;                       ///< One channel's rate.
  BetweenNodes nvls_tree;              ///< One channel's rate.
  double nvls_efficiency = 0;
  std::int64_t nvls_channels = 0;
  std::int64_t nvls_channels_multi_node = 0;
};
const yaml::Table<Generation>& yaml_table(const Generation*);

/// Fractions of a tree's bandwidth by size: entry i applies from 64 x 2^i bytes on.
struct TreeCorrection {
  std::vector<double> ll;
  std::vector<double> ll128;
  std::vector<double> simple;
};
const yaml::Table<TreeCorrection>& yaml_table(const TreeCorrection*);

/// Most threads of one channel.
struct Threads {
  std::int64_t ll = 512;
  std::int64_t ll128 = 640;
  std::int64_t simple = 512;
  std::int64_t simple_slow_ring = 256;  ///< Rings of at most 12 GB/s.
  std::int64_t tree_simple = 640;
};
const yaml::Table<Threads>& yaml_table(const Threads*);

/// Least bytes per thread: an operation gives up channels, then threads, until each has this many.
struct BytesPerThread {
  Bytes ll;  ///< Multiplied by the number of members for a ring.
  Bytes ll128;
  Bytes simple;
  Bytes collnet;
};
const yaml::Table<BytesPerThread>& yaml_table(const BytesPerThread*);

struct Tables {
  std::string name;
  std::string source;
  std::vector<AlgorithmLatency> latencies;
  std::vector<Generation> generations;  ///< Ascending compute capability.
  TreeCorrection tree_correction;
  Seconds network_overhead;        ///< The proxy's time per message (Intel hosts; 2 us on AMD).
  BytesPerSecond pcie_3;           ///< 16 lanes of PCIe 3.0. Each later generation doubles it.
  double pcie_through_socket = 1;  ///< Bytes that one byte between devices over a socket counts as.
  Threads threads;
  BytesPerThread bytes_per_thread;
  std::int64_t most_channels = 64;
  /// The search stops at speeds up to this fraction of the best so far.
  double least_speed = 0;

  /// The generation of GPUs of this compute capability.
  const Generation& generation_of(std::int64_t compute_capability) const;
  /// \pre NCCL has an algorithm of this name
  const AlgorithmLatency& latency_of(std::string_view algorithm) const;
};
/// Catalogue folder: tuners.
const yaml::Table<Tables>& yaml_table(const Tables*);

}  // namespace foreshard::comm::nccl
