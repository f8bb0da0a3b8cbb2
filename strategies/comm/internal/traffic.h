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
class LoadSum {
 public:
  void add(const Route& route, double bytes_per_byte);
  void add(const std::vector<LinkLoad>& loads);
  /// Ascending LinkId, each link once.
  std::vector<LinkLoad> take();

 private:
  void merge();
  std::vector<LinkLoad> loads_;
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
  /// \pre route() succeeded.
  std::vector<LinkLoad> take_loads() { return loads_.take(); }

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

}  // namespace foreshard::comm::internal
