/// \file
/// Gathers what an algorithm sends between the members of a group, and routes each pair once.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/result.h"

#include "strategies/comm/collective.h"

namespace foreshard::comm::internal {

/// One message's way between two members.
struct Hop {
  LinkKind kind = LinkKind::kNvLink;  ///< The widest that it crosses.
  Seconds wire;
  auto operator<=>(const Hop&) const = default;
};

/// Hops one after another.
struct Path {
  double nvlink = 0;  ///< How many hops of that kind.
  double pcie = 0;    ///< Also between sockets.
  double network = 0;
  Seconds wire;

  void add(const Hop& hop, double times = 1);
  void add(const Path& path, double times = 1);
};
/// True if `a` takes longer for any latencies that grow from NVLink over PCIe to the network; where
/// that leaves it open, more network hops decide, then more PCIe hops.
bool longer(const Path& a, const Path& b);

/// Sums loads per link.
///
/// Under adaptive routing all flows of an operation take detours for the same part of their bytes:
/// the least part with which the slowest link is as fast as can be. So flows stay on minimal ways
/// while queues are even. Other groups like this one are taken to fill the rest of the cluster at
/// the same time: links between switches count as often as the cluster has devices for each member.
/// Not modelled: flows that take different parts, groups that are not alike, queues that change
/// within an operation, the longer wires of detours.
class LoadSum {
 public:
  void add(const Route& route, double bytes_per_byte);
  void add(const std::vector<LinkLoad>& loads);
  /// Without detours. Ascending LinkId, each link once.
  std::vector<LinkLoad> take();
  /// \param detour  set to the part of the flows that takes detours (Route::taken).
  /// \return likewise.
  std::vector<LinkLoad> take(const Participants& group, double& detour);

 private:
  static void merge(std::vector<LinkLoad>& loads);
  std::vector<LinkLoad> loads_;
  std::vector<LinkLoad> changes_;  ///< What detours add to the links, less what they take off.
  std::size_t merge_at_ = 1 << 16;
};

class Traffic {
 public:
  explicit Traffic(const Participants& group) : group_(&group) {}

  /// `from` sends `to` that many bytes per byte of the operation. Indices into the group's devices.
  void add(std::int32_t from, std::int32_t to, double bytes_per_byte);
  /// Routes every pair added.
  /// \return kInfeasible where there is no route.
  Status route();
  /// \pre the pair was added, then route() succeeded.
  const Hop& hop(std::int32_t from, std::int32_t to) const;
  /// As LoadSum::take.
  /// \pre route() succeeded.
  std::vector<LinkLoad> take_loads(double& detour) { return loads_.take(*group_, detour); }

 private:
  struct Pair {
    std::int32_t from;
    std::int32_t to;
    double bytes_per_byte;
    Hop hop;
  };
  const Participants* group_;
  std::vector<Pair> pairs_;
  std::unordered_map<std::uint64_t, std::size_t> index_;
  LoadSum loads_;
};

/// The route between two members.
Result<Route> route_between(const Participants& group, std::int32_t from, std::int32_t to);
/// The route of a send to its receive.
Result<Route> peer_route_between(const Participants& group, std::int32_t from, std::int32_t to);

}  // namespace foreshard::comm::internal
