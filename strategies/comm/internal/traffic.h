/// \file
/// Collects the bytes that an algorithm sends between the members of a group, and routes each pair
/// once.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/result.h"

#include "strategies/comm/collective.h"

namespace foreshard::comm::internal {

/// The way of one message between two members.
struct Hop {
  LinkKind kind = LinkKind::kNvLink;  ///< The widest-reaching kind of link that it crosses.
  Seconds wire;
  auto operator<=>(const Hop&) const = default;
};

/// Hops one after another.
struct Path {
  double nvlink = 0;  ///< Number of hops of that kind.
  double pcie = 0;    ///< Hops over PCIe or between sockets.
  double network = 0;
  Seconds wire;

  void add(const Hop& hop, double times = 1);
  void add(const Path& path, double times = 1);
};
/// Whether `a` takes longer than `b` for all latencies that grow from NVLink over PCIe to the
/// network. Where that does not decide, more network hops do, then more PCIe hops.
bool longer(const Path& a, const Path& b);

/// Sums loads per link.
///
/// Under adaptive routing all flows of an operation send the same fraction of their bytes on
/// detours: the least fraction for which the slowest link is as fast as possible. So flows stay on
/// minimal routes while queues are even. The model assumes that equal groups fill the rest of the
/// cluster at the same time: the load of links between switches is multiplied by cluster devices /
/// members.
/// Not modelled: flows with different fractions, unequal groups, queues that change within an
/// operation, the longer wires of detours.
class LoadSum {
 public:
  void add(const Route& route, double bytes_per_byte);
  void add(const std::vector<LinkLoad>& loads);
  /// The loads without detours. Ascending LinkId, each link once.
  std::vector<LinkLoad> take();
  /// \param detour  set to the fraction of the flows that takes detours (Route::taken).
  /// \return the loads with detours, in the same order.
  std::vector<LinkLoad> take(const Participants& group, double& detour);

 private:
  static void merge(std::vector<LinkLoad>& loads);
  std::vector<LinkLoad> loads_;
  /// Load that detours add to each link, less the load that they remove.
  std::vector<LinkLoad> changes_;
  std::size_t merge_at_ = 1 << 16;
};

class Traffic {
 public:
  explicit Traffic(const Participants& group) : group_(&group) {}

  /// Member `from` sends member `to` `bytes_per_byte` bytes per byte of the operation. Both are
  /// indices into the group's devices.
  void add(std::int32_t from, std::int32_t to, double bytes_per_byte);
  /// Routes every pair added.
  /// \return kInfeasible where there is no route.
  Status route();
  /// \pre the pair was added, then route() succeeded.
  const Hop& hop(std::int32_t from, std::int32_t to) const;
  /// The loads, as LoadSum::take gives them.
  /// \pre route() succeeded.
  std::vector<LinkLoad> take_loads(double& detour) { return loads_.take(*group_, detour); }

 private:
  struct MemberPair {
    std::int32_t from;
    std::int32_t to;
    double bytes_per_byte;
    Hop hop;
  };
  const Participants* group_;
  std::vector<MemberPair> pairs_;
  std::unordered_map<std::uint64_t, std::size_t> index_;
  LoadSum loads_;
};

/// The route between two members.
Result<Route> route_between(const Participants& group, std::int32_t from, std::int32_t to);
/// The route of a send to its receive.
Result<Route> peer_route_between(const Participants& group, std::int32_t from, std::int32_t to);

}  // namespace foreshard::comm::internal
