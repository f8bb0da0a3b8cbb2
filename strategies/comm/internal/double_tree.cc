#include "strategies/comm/internal/double_tree.h"

namespace foreshard::comm::internal {
namespace {

// Parent of `place` in the in-order binary tree over 0..count-1 whose root is 0: an odd place is a
// leaf, and a place whose largest power-of-two factor is 2^h has height h. -1 for the root.
std::int32_t in_order_parent(std::int32_t place, std::int32_t count) {
  if (place == 0) return -1;
  const std::int32_t height = place & -place;
  const std::int32_t up = (place ^ height) | (height << 1);
  return up < count ? up : place ^ height;
}

}  // namespace

std::int32_t node_parent(std::int32_t tree, std::int32_t node, std::int32_t count) {
  if (tree == 0) return in_order_parent(node, count);
  if (count % 2 == 0) {
    const std::int32_t parent = in_order_parent(count - 1 - node, count);
    return parent < 0 ? -1 : count - 1 - parent;
  }
  const std::int32_t parent = in_order_parent((node + count - 1) % count, count);
  return parent < 0 ? -1 : (parent + 1) % count;
}

}  // namespace foreshard::comm::internal
