/// \file
/// NCCL's figures for hardware and for itself, as data (configs/tuners/nccl-2.28.yaml): the speeds
/// that its graph search tries, what it takes a link to carry, and the constants of its tuner.
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

/// Of the three protocols; what NCCL does not run with LL or LL128 has none of theirs.
struct PerProtocol {
  std::optional<Seconds> ll;
  std::optional<Seconds> ll128;
  Seconds simple;
};
const yaml::Table<PerProtocol>& yaml_table(const PerProtocol*);

/// What an algorithm's messages take, by what they cross; and the start. NCCL's tables have zeros
/// and numbers that its formulas never read; here each algorithm has exactly what is read.
struct AlgorithmLatency {
  std::string algorithm;  ///< "tree", "ring", "collnet_direct" ...
  std::optional<PerProtocol> base;
  std::optional<PerProtocol> nvlink;
  std::optional<PerProtocol> pcie;
  std::optional<PerProtocol> network;
};
const yaml::Table<AlgorithmLatency>& yaml_table(const AlgorithmLatency*);

/// By number of nodes: one, two, more.
struct PerNodes {
  BytesPerSecond one;
  BytesPerSecond two;
  BytesPerSecond more;
};
const yaml::Table<PerNodes>& yaml_table(const PerNodes*);

/// Likewise, of what one node cannot do.
struct BetweenNodes {
  BytesPerSecond two;
  BytesPerSecond more;
};
const yaml::Table<BetweenNodes>& yaml_table(const BetweenNodes*);

/// When rings and chains are split into twice as many channels.
struct Doubling {
  BytesPerSecond from;      ///< However many there are, at half the speed: from this speed on.
  BytesPerSecond few_from;  ///< Likewise, where there are at most...
  std::int64_t few = 0;     ///< ... so many.
  /// Between nodes a communicator takes twice the channels of its rings, where these are faster...
  BytesPerSecond network_above;
  std::int64_t network_below = 0;  ///< ... and fewer. 0: never.
};
const yaml::Table<Doubling>& yaml_table(const Doubling*);

/// What depends on the GPUs' generation.
struct Generation {
  std::string name;  ///< For people.
  /// The least. Empty: the first generation, which is for all before the second.
  std::optional<std::int64_t> compute_capability{};
  BytesPerSecond nvlink_nominal;             ///< One link by the data sheet.
  BytesPerSecond nvlink;                     ///< What NCCL takes it to carry.
  std::vector<BytesPerSecond> intra_speeds;  ///< Descending.
  std::vector<BytesPerSecond> inter_speeds;
  Doubling doubling;
  PerNodes ll_most;                    ///< Of all channels together.
  std::optional<PerNodes> ring_ll128;  ///< Of one channel. Empty where NCCL has no LL128.
  std::optional<PerNodes> tree_ll128;  ///< Likewise.
  PerNodes tree;                       ///< Of one channel.
  BetweenNodes nvls_tree;              ///< Of one channel.
  double nvls_efficiency = 0;
  std::int64_t nvls_channels = 0;
  std::int64_t nvls_channels_multi_node = 0;
};
const yaml::Table<Generation>& yaml_table(const Generation*);

/// Parts of a tree's bandwidth by size: entry i from 64 x 2^i bytes on.
struct TreeCorrection {
  std::vector<double> ll;
  std::vector<double> ll128;
  std::vector<double> simple;
};
const yaml::Table<TreeCorrection>& yaml_table(const TreeCorrection*);

/// Threads of one channel, at most.
struct Threads {
  std::int64_t ll = 512;
  std::int64_t ll128 = 640;
  std::int64_t simple = 512;
  std::int64_t simple_slow_ring = 256;  ///< Rings of at most 12 GB/s.
  std::int64_t tree_simple = 640;
};
const yaml::Table<Threads>& yaml_table(const Threads*);

/// An operation gives up channels, then threads, until each thread has this much to move.
struct BytesPerThread {
  Bytes ll;  ///< Of a ring times the number of members.
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
  Seconds network_overhead;        ///< Of the proxy, per message (Intel hosts; 2 us on AMD).
  BytesPerSecond pcie_3;           ///< 16 lanes of PCIe 3.0. Each later generation doubles it.
  double pcie_through_socket = 1;  ///< What a byte between devices over a socket counts.
  Threads threads;
  BytesPerThread bytes_per_thread;
  std::int64_t most_channels = 64;
  /// The search gives up at speeds below this part of the best so far.
  double least_speed = 0;

  /// The generation of GPUs of this compute capability.
  const Generation& generation_of(std::int64_t compute_capability) const;
  /// \pre NCCL has such an algorithm.
  const AlgorithmLatency& latency_of(std::string_view algorithm) const;
};
/// Catalogue folder: tuners.
const yaml::Table<Tables>& yaml_table(const Tables*);

}  // namespace foreshard::comm::nccl
