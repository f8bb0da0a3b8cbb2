/// \file
/// Which parts of a cluster are built alike, so that what is known about routes in one place holds
/// in other places.
///
/// **Parts** are the nodes and the switches outside of any node. A node holds the links inside it
/// and its ports (its links to switches); a switch holds its links to its parent. Two parts of one
/// *shape* have the same vertices and links, in the same order, with the same attributes.
///
/// **Why routes carry over.** Where the switches form trees, a path between two nodes is unique
/// from the port where it leaves to the port where it enters, and paths never pass through a third
/// node. So the routes among some nodes depend only on these nodes and on the switches above them.
/// Take two lists of nodes with the same shapes, one by one. Let the switches at their ports have
/// the same shapes, one by one, and coincide in the same places of both lists, and so on up to the
/// roots. Then mapping the parts of one list to the parts of the other keeps links, attributes and
/// connections: it maps routes to routes, link by link. This holds for any routing that looks at
/// nothing else: not for kEcmpHash, which looks at names, nor for kAdaptive, which looks at the
/// whole fabric.
///
/// Shapes are compared by 64-bit hashes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topology/cluster_view.h"

namespace foreshard {

class RouteSymmetry {
 public:
  /// Cost: O(vertices + links).
  explicit RouteSymmetry(const ClusterView& cluster);

  /// Why routes of one place do not carry over to others; empty if they do.
  const std::string& fault() const { return fault_; }

  std::int32_t part_of_node(std::int32_t node) const { return node; }
  std::size_t part_count() const { return shape_.size(); }
  std::uint64_t shape(std::int32_t part) const { return shape_[at(part)]; }
  /// The switches at the ports of a node, port by port, or the parent of a switch.
  std::span<const std::int32_t> parents(std::int32_t part) const {
    return {parents_.data() + first_parent_[at(part)],
            parents_.data() + first_parent_[at(part) + 1]};
  }
  std::int32_t number_in_node(DeviceId device) const { return number_[device.index()]; }

  struct LinkPosition {
    std::int32_t part = 0;
    std::int32_t index = 0;  ///< Index among the links of the part.
  };
  LinkPosition position_of(LinkId link) const { return position_[link.index()]; }
  LinkId link_at(LinkPosition position) const {
    return links_[first_link_[at(position.part)] + static_cast<std::size_t>(position.index)];
  }

 private:
  static std::size_t at(std::int32_t part) { return static_cast<std::size_t>(part); }

  std::string fault_;
  std::vector<std::uint64_t> shape_;
  std::vector<std::size_t> first_parent_;  // per part, into parents_
  std::vector<std::int32_t> parents_;
  std::vector<std::size_t> first_link_;  // per part, into links_
  std::vector<LinkId> links_;
  std::vector<LinkPosition> position_;  // per link
  std::vector<std::int32_t> number_;    // per device
};

}  // namespace foreshard
