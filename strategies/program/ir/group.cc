// Mesh arithmetic of groups. Callers are the lowering, the verifier, the simulator, and validate/
// (replay, calibrate, compare, profile). A further kind of group is a case in each function below.
#include "strategies/program/ir/group.h"

#include <algorithm>

namespace foreshard::program {
namespace {

// Distance between ranks that differ by one on `axis`.
std::int64_t stride_of(const Program& program, std::int32_t axis) {
  std::int64_t stride = 1;
  for (std::int32_t a = 0; a < axis; ++a) stride *= program.mesh[static_cast<std::size_t>(a)].size;
  return stride;
}

const std::vector<std::int32_t>* list_with(const RankGroups& groups, std::int32_t rank) {
  for (const auto& list : groups.groups)
    if (std::find(list.begin(), list.end(), rank) != list.end()) return &list;
  return nullptr;
}

bool takes_part(const Program& program, const AxisGroup& group, std::int32_t rank) {
  if (group.coordinates.empty()) return true;
  const auto own = coordinate_of(program, rank, group.axes[0]);
  return std::find(group.coordinates.begin(), group.coordinates.end(), own) !=
         group.coordinates.end();
}

std::vector<std::int32_t> members(const Program& program, const AxisGroup& group,
                                  std::int32_t rank) {
  if (!takes_part(program, group, rank)) return {};
  std::vector<std::int32_t> found{rank};
  for (const std::int32_t axis : group.axes) {
    std::vector<std::int64_t> coordinates = group.coordinates;
    if (coordinates.empty())
      for (std::int64_t c = 0; c < program.mesh[static_cast<std::size_t>(axis)].size; ++c)
        coordinates.push_back(c);
    std::vector<std::int32_t> wider;
    wider.reserve(found.size() * coordinates.size());
    for (const std::int32_t r : found)
      for (const std::int64_t c : coordinates)
        wider.push_back(with_coordinate(program, r, axis, c));
    found = std::move(wider);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::int64_t coordinate_of(const Program& program, std::int32_t rank, std::int32_t axis) {
  return rank / stride_of(program, axis) % program.mesh[static_cast<std::size_t>(axis)].size;
}

std::int32_t with_coordinate(const Program& program, std::int32_t rank, std::int32_t axis,
                             std::int64_t coordinate) {
  const std::int64_t moved = coordinate - coordinate_of(program, rank, axis);
  return static_cast<std::int32_t>(rank + moved * stride_of(program, axis));
}

std::vector<std::int32_t> members_of(const Program& program, const Group& group,
                                     std::int32_t rank) {
  if (const auto* axes = std::get_if<AxisGroup>(&group)) return members(program, *axes, rank);
  if (const auto peer = peer_of(program, group, rank))
    return {std::min(rank, *peer), std::max(rank, *peer)};
  const auto* list = list_with(std::get<RankGroups>(group), rank);
  if (!list) return {};
  auto sorted = *list;
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

std::vector<std::int32_t> labels_of(const Program& program, const Group& group) {
  const auto ranks = static_cast<std::int32_t>(program.ranks());
  std::vector<std::int32_t> label(static_cast<std::size_t>(ranks), -1);
  if (const auto* lists = std::get_if<RankGroups>(&group)) {
    for (const auto& list : lists->groups)
      for (const std::int32_t r : list) label[static_cast<std::size_t>(r)] = list[0];
    return label;
  }
  const auto& axes = std::get<AxisGroup>(group);
  for (std::int32_t r = 0; r < ranks; ++r) {
    if (!takes_part(program, axes, r)) continue;
    std::int32_t corner = r;
    for (const std::int32_t axis : axes.axes) corner = with_coordinate(program, corner, axis, 0);
    label[static_cast<std::size_t>(r)] = corner;
  }
  return label;
}

std::int64_t size_of(const Program& program, const Group& group, std::int32_t rank) {
  if (const auto* axes = std::get_if<AxisGroup>(&group)) {
    if (!takes_part(program, *axes, rank)) return 0;
    if (!axes->coordinates.empty()) return static_cast<std::int64_t>(axes->coordinates.size());
    std::int64_t size = 1;
    for (const std::int32_t axis : axes->axes)
      size *= program.mesh[static_cast<std::size_t>(axis)].size;
    return size;
  }
  if (std::holds_alternative<AxisPeer>(group)) return 2;
  const auto* list = list_with(std::get<RankGroups>(group), rank);
  return list ? static_cast<std::int64_t>(list->size()) : 0;
}

std::optional<std::int32_t> peer_of(const Program& program, const Group& group, std::int32_t rank) {
  const auto* peer = std::get_if<AxisPeer>(&group);
  if (!peer) return std::nullopt;
  return with_coordinate(program, rank, peer->axis, peer->coordinate);
}

}  // namespace foreshard::program
