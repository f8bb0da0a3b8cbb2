// Mesh arithmetic of groups. Callers are the lowering, the verifier, the simulator, and validate/
// (replay, calibrate, compare, profile). A further kind of group is a case in each function below.
#include "strategies/program/ir/group.h"

#include <algorithm>
#include <charconv>
#include <optional>

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

Error fault(std::string_view part, const std::string& why) {
  return {Error::Code::kInvalidInput, "'" + std::string(part.substr(0, 40)) + "' " + why};
}

// Takes an integer off the front of `text`.
std::optional<std::int32_t> take_number(std::string_view& text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

struct Range {
  std::int64_t first, last, step;
};

// "5", "0-7" or "0-56:8".
std::optional<Range> parse(std::string_view text) {
  const auto first = take_number(text);
  if (!first || *first < 0) return std::nullopt;
  if (text.empty()) return Range{*first, *first, 1};
  if (!take(text, '-')) return std::nullopt;
  const auto last = take_number(text);
  if (!last || *last < 0) return std::nullopt;
  if (text.empty()) return Range{*first, *last, 1};
  if (!take(text, ':')) return std::nullopt;
  const auto step = take_number(text);
  if (!step || !text.empty()) return std::nullopt;
  return Range{*first, *last, *step};
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

std::string write_ranges(const std::vector<std::int32_t>& list) {
  std::string text;
  for (std::size_t i = 0; i < list.size();) {
    std::size_t end = i + 1;
    const std::int64_t step = end < list.size() ? std::int64_t{list[end]} - list[i] : 0;
    while (step != 0 && end < list.size() && std::int64_t{list[end]} - list[end - 1] == step) ++end;
    if (end - i < 3) end = i + 1;
    if (!text.empty()) text += ',';
    text += std::to_string(list[i]);
    if (end - i > 1) text += '-' + std::to_string(list[end - 1]);
    if (end - i > 1 && step != 1) text += ':' + std::to_string(step);
    i = end;
  }
  return text;
}

Result<std::vector<std::int32_t>> read_ranges(std::string_view text, std::size_t limit) {
  std::vector<std::int32_t> list;
  if (text.empty()) return list;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const auto range = parse(part);
    if (!range) return fault(part, "is not a range of ranks such as 7, 0-127 or 0-120:8");
    if (range->step == 0 || (range->last - range->first) % range->step != 0 ||
        (range->last - range->first) / range->step < 0)
      return fault(part, "does not reach its end in whole steps");
    const std::int64_t count = (range->last - range->first) / range->step + 1;
    if (static_cast<std::uint64_t>(count) > limit - list.size())
      return fault(part, "makes the list longer than " + std::to_string(limit));
    for (std::int64_t i = 0; i < count; ++i)
      list.push_back(static_cast<std::int32_t>(range->first + i * range->step));
    if (comma == std::string_view::npos) return list;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace foreshard::program
