#include "strategies/reshard/internal/attributes.h"

#include <algorithm>
#include <utility>

namespace foreshard::reshard::internal {
namespace {

using Sizes = std::vector<std::int64_t>;

bool even(const Sizes& sizes) {
  return std::ranges::adjacent_find(sizes, std::not_equal_to<>{}) == sizes.end();
}

// Whether the canonical `attribute` cuts `dim` evenly, so that no list of sizes is needed.
bool even_in(const Attribute& attribute, std::size_t dim) {
  return attribute.sizes.empty() || attribute.sizes[dim].empty();
}

// Sets the sizes of one dimension in canonical form.
void set_sizes(Attribute& attribute, std::size_t dim, Sizes sizes) {
  if (even(sizes)) sizes.clear();
  if (attribute.sizes.empty()) {
    if (sizes.empty()) return;
    attribute.sizes.resize(attribute.dims.size());
  }
  attribute.sizes[dim] = std::move(sizes);
  if (std::ranges::all_of(attribute.sizes, [](const Sizes& s) { return s.empty(); }))
    attribute.sizes.clear();
}

bool begins(const std::vector<Axis>& prefix, const std::vector<Axis>& whole) {
  return prefix.size() <= whole.size() && std::equal(prefix.begin(), prefix.end(), whole.begin());
}

std::int64_t ways_from(const std::vector<Axis>& axes, std::size_t first, const Grid& grid) {
  std::int64_t product = 1;
  for (std::size_t i = first; i < axes.size(); ++i) product *= grid.size(axes[i]);
  return product;
}

}  // namespace

bool contains(const std::vector<Axis>& axes, Axis axis) {
  return std::ranges::find(axes, axis) != axes.end();
}

Attribute canonical(Attribute attribute, const Grid& grid) {
  const auto single = [&](Axis axis) { return grid.size(axis) == 1; };
  for (auto& dim : attribute.dims) std::erase_if(dim, single);
  std::erase_if(attribute.partial, [&](const Partial& p) { return single(p.axis); });
  if (!attribute.sizes.empty()) {
    auto sizes = std::exchange(attribute.sizes, {});
    for (std::size_t d = 0; d < sizes.size(); ++d)
      if (!sizes[d].empty()) set_sizes(attribute, d, std::move(sizes[d]));
  }
  return attribute;
}

Sizes sizes_of(const Attribute& attribute, const Grid& grid, std::size_t dim) {
  if (dim < attribute.sizes.size() && !attribute.sizes[dim].empty()) return attribute.sizes[dim];
  const std::int64_t parts = ways(attribute.dims[dim], grid.axes);
  return Sizes(static_cast<std::size_t>(parts), grid.shape[dim] / parts);
}

Sizes extents_of(const Attribute& attribute, const Grid& grid) {
  Sizes extents;
  extents.reserve(grid.shape.size());
  for (std::size_t d = 0; d < grid.shape.size(); ++d)
    extents.push_back(even_in(attribute, d) ? grid.shape[d] / ways(attribute.dims[d], grid.axes)
                                            : std::ranges::max(attribute.sizes[d]));
  return extents;
}

Sizes merged(const Sizes& sizes, std::int64_t run) {
  Sizes sums(sizes.size() / static_cast<std::size_t>(run), 0);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    sums[i / static_cast<std::size_t>(run)] += sizes[i];
  return sums;
}

std::size_t settled(const Attribute& attribute, const Attribute& guide, const Grid& grid,
                    std::size_t dim) {
  const auto& mine = attribute.dims[dim];
  const auto& wanted = guide.dims[dim];
  std::size_t common = 0;
  while (common < mine.size() && common < wanted.size() && mine[common] == wanted[common]) ++common;
  if (common == 0 || (even_in(attribute, dim) && even_in(guide, dim))) return common;
  const Sizes a = sizes_of(attribute, grid, dim);
  const Sizes b = sizes_of(guide, grid, dim);
  while (common > 0 &&
         merged(a, ways_from(mine, common, grid)) != merged(b, ways_from(wanted, common, grid)))
    --common;
  return common;
}

Attribute without_minor(const Attribute& attribute, const Grid& grid, std::size_t dim,
                        std::size_t count) {
  Attribute less = attribute;
  auto& axes = less.dims[dim];
  const std::size_t left = axes.size() - count;
  Sizes sizes;
  if (!even_in(attribute, dim))
    sizes = merged(sizes_of(attribute, grid, dim), ways_from(axes, left, grid));
  axes.resize(left);
  set_sizes(less, dim, std::move(sizes));
  return less;
}

std::optional<Attribute> with_minor(const Attribute& attribute, const Grid& grid, std::size_t dim,
                                    Axis axis, const Attribute& guide, Cut cut) {
  Attribute more = attribute;
  auto& axes = more.dims[dim];
  axes.push_back(axis);
  const std::int64_t parts = grid.size(axis);
  const bool guided = begins(axes, guide.dims[dim]);
  if (even_in(attribute, dim) &&
      (guided ? even_in(guide, dim) : grid.shape[dim] % ways(axes, grid.axes) == 0))
    return more;
  const Sizes present = sizes_of(attribute, grid, dim);
  Sizes sizes;
  if (guided) {
    sizes = merged(sizes_of(guide, grid, dim), ways_from(guide.dims[dim], axes.size(), grid));
    if (merged(sizes, parts) != present) return std::nullopt;
  } else {
    sizes.reserve(present.size() * static_cast<std::size_t>(parts));
    for (const auto extent : present) {
      if (cut == Cut::kEven && extent % parts != 0) return std::nullopt;
      for (const auto part : balanced_sizes(extent, parts)) sizes.push_back(part);
    }
  }
  set_sizes(more, dim, std::move(sizes));
  return more;
}

std::optional<Attribute> parked(const Attribute& attribute, const Grid& grid, Axis axis,
                                const Attribute& guide) {
  std::optional<Attribute> waiting;
  std::size_t longest = 0;
  for (std::size_t d = 0; d < grid.shape.size(); ++d) {
    if (grid.shape[d] > grid.shape[longest]) longest = d;
    auto even_cut = with_minor(attribute, grid, d, axis, guide, Cut::kEven);
    if (!even_cut || grid.shape[d] == 0) continue;
    const auto& wanted = guide.dims[d];
    const bool waits = std::ranges::any_of(
        wanted, [&](Axis other) { return !contains(attribute.dims[d], other); });
    if (!waits) return even_cut;
    if (!waiting) waiting = std::move(even_cut);
  }
  if (waiting || grid.shape.empty()) return waiting;
  return with_minor(attribute, grid, longest, axis, guide, Cut::kBalanced);
}

std::optional<Attribute> placed(const Attribute& attribute, const Grid& grid,
                                const std::vector<Axis>& axes, const Attribute& guide) {
  Attribute at = attribute;
  std::size_t done = 0;
  for (std::size_t d = 0; d < guide.dims.size(); ++d) {
    if (!begins(at.dims[d], guide.dims[d])) continue;
    while (at.dims[d].size() < guide.dims[d].size() &&
           contains(axes, guide.dims[d][at.dims[d].size()])) {
      auto next = with_minor(at, grid, d, guide.dims[d][at.dims[d].size()], guide, Cut::kEven);
      if (!next) return std::nullopt;
      at = *std::move(next);
      ++done;
    }
  }
  if (done != axes.size()) return std::nullopt;
  return at;
}

std::int32_t dim_of(const Attribute& attribute, Axis axis) {
  for (std::size_t d = 0; d < attribute.dims.size(); ++d)
    if (contains(attribute.dims[d], axis)) return static_cast<std::int32_t>(d);
  return -1;
}

Attribute without_partial(Attribute attribute) {
  attribute.partial.clear();
  return attribute;
}

}  // namespace foreshard::reshard::internal
