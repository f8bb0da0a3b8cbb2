#include "strategies/reshard/internal/common_mesh.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace foreshard::reshard::internal {
namespace {

// An axis in positions of the `from` mesh: coordinates are `stride` apart, up to `end`.
struct Span {
  std::int64_t stride = 1;
  std::int64_t end = 1;
};

std::vector<Span> spans_of(const std::vector<MeshAxis>& axes) {
  std::vector<Span> spans;
  std::int64_t stride = 1;
  for (const MeshAxis& axis : axes) {
    spans.push_back({stride, stride * axis.size});
    stride *= axis.size;
  }
  return spans;
}

// The axes of `to` in positions of `from`; empty if the positions are not linear in `to`'s
// coordinates.
std::optional<std::vector<Span>> spans_within(const ProcessMesh& from, const ProcessMesh& to) {
  if (from.size() != to.size()) return std::nullopt;
  std::map<std::int32_t, std::int64_t> position;
  for (std::int64_t i = 0; i < from.size(); ++i)
    position[from.ranks[static_cast<std::size_t>(i)]] = i;
  std::vector<std::int64_t> seen;
  seen.reserve(to.ranks.size());
  for (const auto rank : to.ranks) {
    const auto found = position.find(rank);
    if (found == position.end()) return std::nullopt;
    seen.push_back(found->second);
  }
  std::vector<Span> spans;
  std::int64_t step = 1;
  for (const MeshAxis& axis : to.axes) {
    const std::int64_t stride = axis.size > 1 ? seen[static_cast<std::size_t>(step)] - seen[0] : 1;
    if (stride < 1) return std::nullopt;
    spans.push_back({stride, stride * axis.size});
    step *= axis.size;
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    auto rest = static_cast<std::int64_t>(i);
    std::int64_t expected = 0;
    for (std::size_t a = 0; a < spans.size(); ++a) {
      expected += rest % to.axes[a].size * spans[a].stride;
      rest /= to.axes[a].size;
    }
    if (seen[i] != expected) return std::nullopt;
  }
  return spans;
}

}  // namespace

std::optional<CommonMesh> common_mesh(const ProcessMesh& from, const ProcessMesh& to,
                                      std::int64_t run) {
  const auto mine = spans_of(from.axes);
  const auto theirs = spans_within(from, to);
  if (!theirs) return std::nullopt;
  std::set<std::int64_t> cuts{1, from.size(), run};
  for (const auto* spans : {&mine, &*theirs})
    for (const Span& span : *spans) cuts.insert({span.stride, span.end});

  CommonMesh common{.mesh = {.axes = {}, .ranks = from.ranks},
                    .from = std::vector<std::vector<Axis>>(from.axes.size()),
                    .to = std::vector<std::vector<Axis>>(to.axes.size())};
  std::set<std::string> names;
  for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
    const std::int64_t begin = *cut;
    const std::int64_t end = *std::next(cut);
    if (end % begin != 0) return std::nullopt;
    const auto axis = static_cast<Axis>(common.mesh.axes.size());
    std::string name;
    std::string part_name;
    for (std::size_t a = 0; a < mine.size(); ++a) {
      if (begin < mine[a].stride || end > mine[a].end) continue;
      part_name = from.axes[a].name + "." + std::to_string(common.from[a].size());
      common.from[a].push_back(axis);
      if (begin == mine[a].stride && end == mine[a].end) name = from.axes[a].name;
    }
    for (std::size_t a = 0; a < theirs->size(); ++a) {
      const Span& span = (*theirs)[a];
      if (begin < span.stride || end > span.end) continue;
      common.to[a].push_back(axis);
      if (name.empty() && begin == span.stride && end == span.end) name = to.axes[a].name;
    }
    if (name.empty() || names.contains(name)) name = part_name;
    while (names.contains(name)) name += "'";
    names.insert(name);
    common.mesh.axes.push_back({.name = name, .size = end / begin});
  }
  return common;
}

std::int64_t ranks_per_node(const ProcessMesh& mesh,
                            const std::vector<std::int32_t>& node_of_rank) {
  if (node_of_rank.empty()) return 1;
  const auto node = [&](std::size_t position) {
    return node_of_rank[static_cast<std::size_t>(mesh.ranks[position])];
  };
  std::size_t run = 1;
  while (run < mesh.ranks.size() && node(run) == node(0)) ++run;
  if (run == mesh.ranks.size() || mesh.ranks.size() % run != 0) return 1;
  for (std::size_t i = 0; i < mesh.ranks.size(); ++i)
    if (node(i) != node(i - i % run)) return 1;
  return static_cast<std::int64_t>(run);
}

Attribute told_on(const std::vector<std::vector<Axis>>& axes, const Attribute& attribute) {
  Attribute told{.dims = {}, .partial = {}, .sizes = attribute.sizes};
  for (const auto& dim : attribute.dims) {
    auto& parts = told.dims.emplace_back();
    for (const Axis axis : dim) {
      const auto& finer = axes[static_cast<std::size_t>(axis)];
      parts.insert(parts.end(), finer.rbegin(), finer.rend());
    }
  }
  for (const Partial& partial : attribute.partial)
    for (const Axis axis : axes[static_cast<std::size_t>(partial.axis)])
      told.partial.push_back({axis, partial.reduction});
  std::ranges::sort(told.partial);
  return told;
}

}  // namespace foreshard::reshard::internal
