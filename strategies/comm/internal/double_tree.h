/// \file
/// Two binary trees over the same nodes. Every node is a leaf of one tree and inside the other.
#pragma once

#include <cstdint>

namespace foreshard::comm::internal {

inline constexpr std::int32_t kTrees = 2;

/// Parent of `node` in tree 0 or 1; -1 for the root. The second tree is the mirror of the first
/// (even counts) or the first shifted by one (odd counts).
/// Source: Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction
/// and scan", Parallel Computing 35(12), 2009; NVIDIA/nccl v2.28.9, src/graph/trees.cc.
std::int32_t node_parent(std::int32_t tree, std::int32_t node, std::int32_t count);

}  // namespace foreshard::comm::internal
