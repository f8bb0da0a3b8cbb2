/// \file
/// Workloads that tests and benchmarks of the engines build: what `strategies` would lower to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "sim/engine/workload.h"

namespace foreshard::engine {

/// Unit weight on each resource of `path`.
inline Shape path_shape(const std::vector<ResourceId>& path) {
  Shape shape;
  for (const ResourceId r : path) shape.usages.push_back({.resource = r});
  return shape;
}

inline Activity task(ShapeId shape, double work, Seconds latency = {}) {
  return {.shape = shape, .latency = latency, .work = work, .release_from = {}, .release_lag = {}};
}

/// Ring all-reduce of `ranks` ranks, one flow per rank and step: 2 (ranks-1) steps, each of which
/// moves `chunk` bytes from every rank to the next. A rank sends on what it received in the step
/// before, after its own send of that step. `spread` makes chunks differ by up to that part.
inline Workload stepwise_ring(int ranks, double chunk, double bandwidth, Seconds latency,
                              double spread = 0, std::uint64_t seed = 1) {
  Workload w;
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t steps = 2 * (n - 1);
  std::vector<ShapeId> send;
  for (std::size_t r = 0; r < n; ++r)
    send.push_back(
        w.add_shape(path_shape({w.add_resource(bandwidth, "link" + std::to_string(r))})));
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> part(0, spread);
  w.reserve(steps * n, 2 * steps * n);
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t r = 0; r < n; ++r) {
      const double bytes = spread > 0 ? chunk * (1 - part(random)) : chunk;
      const ActivityId flow = w.add_activity(task(send[r], bytes, latency));
      if (step == 0) continue;
      const auto before = static_cast<std::int64_t>((step - 1) * n);
      w.add_edge(ActivityId(before + static_cast<std::int64_t>(r)), flow);
      w.add_edge(ActivityId(before + static_cast<std::int64_t>((r + n - 1) % n)), flow);
    }
  }
  return w;
}

/// Flows between random hosts of a two-level fat tree: `in_flight` chains of `length` flows, each
/// of which starts when the one before has ended. Hosts of one leaf share up- and downlinks with
/// half of their bandwidth (2:1 oversubscription), chosen at random.
inline Workload random_fat_tree(int leaves, int hosts_per_leaf, int in_flight, int length,
                                std::uint64_t seed) {
  constexpr double kBandwidth = 50e9;
  Workload w;
  const auto hosts = static_cast<std::size_t>(leaves) * static_cast<std::size_t>(hosts_per_leaf);
  const auto spines = static_cast<std::size_t>(std::max(1, hosts_per_leaf / 2));
  const auto links = [&](std::size_t count) {
    std::vector<ResourceId> ids;
    for (std::size_t i = 0; i < count; ++i) ids.push_back(w.add_resource(kBandwidth));
    return ids;
  };
  const auto out = links(hosts);
  const auto in = links(hosts);
  const auto up = links(static_cast<std::size_t>(leaves) * spines);
  const auto down = links(static_cast<std::size_t>(leaves) * spines);
  std::mt19937_64 random(seed);
  const auto below = [&random](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  std::uniform_real_distribution<double> bytes(1e5, 1e8);
  for (int chain = 0; chain < in_flight; ++chain) {
    ActivityId before;
    for (int i = 0; i < length; ++i) {
      const std::size_t from = below(hosts);
      std::size_t to = below(hosts - 1);
      if (to >= from) ++to;
      std::vector<ResourceId> path{out[from]};
      const std::size_t from_leaf = from / static_cast<std::size_t>(hosts_per_leaf);
      const std::size_t to_leaf = to / static_cast<std::size_t>(hosts_per_leaf);
      if (from_leaf != to_leaf) {
        const std::size_t spine = below(spines);
        path.push_back(up[from_leaf * spines + spine]);
        path.push_back(down[to_leaf * spines + spine]);
      }
      path.push_back(in[to]);
      const ActivityId flow =
          w.add_activity(task(w.add_shape(path_shape(path)), bytes(random), 2_us));
      if (before.valid()) w.add_edge(before, flow);
      before = flow;
    }
  }
  return w;
}

/// `devices` streams of `length` kernels each, of different durations.
inline Workload compute_chains(int devices, int length, std::uint64_t seed) {
  Workload w;
  std::vector<ShapeId> kernel;
  kernel.reserve(static_cast<std::size_t>(devices));
  for (int d = 0; d < devices; ++d) kernel.push_back(w.add_shape(path_shape({w.add_resource(1)})));
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> duration(1e-6, 1e-3);
  const auto count = static_cast<std::size_t>(devices) * static_cast<std::size_t>(length);
  w.reserve(count, count);
  for (int i = 0; i < length; ++i) {
    for (int d = 0; d < devices; ++d) {
      const ActivityId a =
          w.add_activity(task(kernel[static_cast<std::size_t>(d)], duration(random)));
      if (i > 0) w.add_edge(ActivityId(a.value() - devices), a);
    }
  }
  return w;
}

/// `rounds` direct all-to-alls between `hosts` hosts, one after the other: each host sends to all
/// others at once over its own link, into theirs.
inline Workload all_to_all(int hosts, int rounds, double bytes) {
  Workload w;
  const auto n = static_cast<std::size_t>(hosts);
  std::vector<ResourceId> out;
  std::vector<ResourceId> in;
  for (std::size_t h = 0; h < n; ++h) {
    out.push_back(w.add_resource(50e9));
    in.push_back(w.add_resource(50e9));
  }
  std::vector<ShapeId> send;
  for (std::size_t from = 0; from < n; ++from)
    for (std::size_t to = 0; to < n; ++to)
      if (from != to) send.push_back(w.add_shape(path_shape({out[from], in[to]})));
  const ShapeId nothing = w.add_shape({});
  ActivityId before;
  for (int round = 0; round < rounds; ++round) {
    std::vector<ActivityId> sent;
    for (const ShapeId shape : send) {
      sent.push_back(w.add_activity(task(shape, bytes, 2_us)));
      if (before.valid()) w.add_edge(before, sent.back());
    }
    before = w.add_activity(task(nothing, 0));
    for (const ActivityId flow : sent) w.add_edge(flow, before);
  }
  return w;
}

}  // namespace foreshard::engine
