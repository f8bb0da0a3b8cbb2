/// \file
/// Two binary trees over the same nodes. Every node is a leaf of one tree and inside the other.
#pragma once

#include <cstdint>

namespace foreshard::comm::internal {

inline constexpr std::int32_t kTrees = 2;

/// Parent of `place` in the in-order binary tree over 0..count-1 whose root is 0: an odd place is a
/// leaf, and a place whose largest power-of-two factor is 2^h has height h. -1 for the root.
inline std::int32_t in_order_parent(std::int32_t place, std::int32_t count) {
  if (place == 0) return -1;
  const std::int32_t height = place & -place;
  const std::int32_t up = (place ^ height) | (height << 1);
  return up < count ? up : place ^ height;
}

/// Parent of `node` in tree 0 or 1; -1 for the root. The second tree is the mirror of the first
/// (even counts) or the first shifted by one (odd counts).
/// Source: Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction
/// and scan", Parallel Computing 35(12), 2009; NVIDIA/nccl v2.28.9, src/graph/trees.cc.
inline std::int32_t node_parent(std::int32_t tree, std::int32_t node, std::int32_t count) {
  if (tree == 0) return in_order_parent(node, count);
  if (count % 2 == 0) {
    const std::int32_t parent = in_order_parent(count - 1 - node, count);
    return parent < 0 ? -1 : count - 1 - parent;
  }
  const std::int32_t parent = in_order_parent((node + count - 1) % count, count);
  return parent < 0 ? -1 : (parent + 1) % count;
}

}  // namespace foreshard::comm::internal
