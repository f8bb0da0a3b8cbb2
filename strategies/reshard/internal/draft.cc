#include "strategies/reshard/internal/draft.h"

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

MeshId Meshes::add(ProcessMesh mesh) {
  for (std::size_t i = 0; i < meshes_.size(); ++i)
    if (meshes_[i] == mesh) return static_cast<MeshId>(i);
  meshes_.push_back(std::move(mesh));
  return static_cast<MeshId>(meshes_.size()) - 1;
}

void append(Draft& draft, DraftStep step) {
  if (step.primitive == Primitive::kSlice && !draft.steps.empty()) {
    DraftStep& last = draft.steps.back();
    if (last.primitive == Primitive::kSlice && last.from.mesh == last.to.mesh &&
        step.from.mesh == step.to.mesh) {
      last.to = std::move(step.to);
      last.axes.insert(last.axes.end(), step.axes.begin(), step.axes.end());
      std::ranges::sort(last.axes);
      return;
    }
  }
  draft.steps.push_back(std::move(step));
}

Step Pricer::step_of(const DraftStep& step) const {
  return {.primitive = step.primitive,
          .from = {.mesh = meshes_.at(step.from.mesh), .attribute = step.from.attribute},
          .to = {.mesh = meshes_.at(step.to.mesh), .attribute = step.to.attribute},
          .axes = step.axes};
}

const Result<Seconds>& Pricer::price(const DraftStep& step) {
  if (step.axes.empty() || step.primitive == Primitive::kBroadcast) {
    const std::pair<MeshAttribute, MeshAttribute> key{step.from, step.to};
    const auto known = others_.find(key);
    if (known != others_.end()) return known->second;
    return others_.emplace(key, price_(step_of(step))).first->second;
  }
  const Grid grid = grid_at(step.to.mesh);
  std::vector<std::int64_t> extents = extents_of(step.from.attribute, grid);
  for (const auto extent : extents_of(step.to.attribute, grid)) extents.push_back(extent);
  Key key{step.primitive, step.to.mesh, step.axes, logical(step).in_base(), std::move(extents)};
  const auto known = collectives_.find(key);
  if (known != collectives_.end()) return known->second;
  return collectives_.emplace(std::move(key), price_(step_of(step))).first->second;
}

// As volume_of(step).logical, but by division where slices are even.
Bytes Pricer::logical(const DraftStep& step) const {
  const Grid grid = grid_at(step.to.mesh);
  if (!step.from.attribute.sizes.empty() || !step.to.attribute.sizes.empty()) {
    // The bytes depend on the mesh's axes only: a layout without its ranks is enough.
    const ProcessMesh axes{.axes = grid.axes};
    return logical_bytes({.primitive = step.primitive,
                          .from = {.mesh = axes, .attribute = step.from.attribute},
                          .to = {.mesh = axes, .attribute = step.to.attribute},
                          .axes = step.axes},
                         tensor_);
  }
  const auto from = extents_of(step.from.attribute, grid);
  const auto to = extents_of(step.to.attribute, grid);
  const auto ranks = static_cast<double>(ways(step.axes, grid.axes));
  double elements = 1;
  for (std::size_t d = 0; d < from.size(); ++d) {
    switch (step.primitive) {
      case Primitive::kReduceScatter:
        elements *= static_cast<double>(to[d]);
        break;
      case Primitive::kAllToAll:  // The first slices before and after both begin at 0.
        elements *= static_cast<double>(std::min(from[d], to[d]));
        break;
      default:
        elements *= static_cast<double>(from[d]);
    }
  }
  if (step.primitive == Primitive::kAllToAll) elements *= ranks;
  if (step.primitive == Primitive::kAllToAll || step.primitive == Primitive::kReduceScatter ||
      step.primitive == Primitive::kAllGather)
    elements *= ranks;
  return size_of(tensor_.dtype) * elements;
}

Bytes Pricer::bytes_per_rank(const DraftStep& step) const {
  if (is_local(step.primitive)) return {};
  if (step.primitive == Primitive::kTransfer || step.primitive == Primitive::kBroadcast)
    return volume_of(step_of(step), tensor_).exact_total /
           static_cast<double>(meshes_.at(step.to.mesh).size());
  const auto ranks = static_cast<double>(ways(step.axes, grid_at(step.to.mesh).axes));
  return volume_of_group(step.primitive, logical(step), ranks).exact_total / ranks;
}

void Pricer::calibrate(MeshId mesh) {
  const Grid grid = grid_at(mesh);
  const Attribute whole = replicated(grid.shape.size());
  for (Axis axis = 0; static_cast<std::size_t>(axis) < grid.axes.size(); ++axis) {
    const auto split = parked(whole, grid, axis, whole);
    if (grid.size(axis) == 1 || !split) continue;
    const DraftStep gather{.primitive = Primitive::kAllGather,
                           .from = {mesh, *split},
                           .to = {mesh, whole},
                           .axes = {axis}};
    const auto& time = price(gather);
    if (time && *time > Seconds{}) fastest_ = std::max(fastest_, bytes_per_rank(gather) / *time);
  }
}

Seconds Pricer::bound(const DraftStep& step) const {
  if (!(fastest_ > BytesPerSecond{})) return {};
  return bytes_per_rank(step) / (2 * fastest_);
}

Seconds Pricer::bound(const Draft& draft) const {
  Seconds sum{};
  for (const DraftStep& step : draft.steps) sum += bound(step);
  return sum;
}

Result<Seconds> Pricer::price(const Draft& draft) {
  Seconds sum{};
  for (const DraftStep& step : draft.steps) {
    const auto& time = price(step);
    if (!time) return time;
    sum += *time;
  }
  return sum;
}

std::string name_of(const Draft& draft, const Meshes& meshes) {
  std::string text;
  for (const DraftStep& step : draft.steps) {
    if (step.rename) continue;
    if (!text.empty()) text += " + ";
    text += name_of(step.primitive);
    std::string axes;
    for (const Axis axis : step.axes)
      axes += (axes.empty() ? "" : ",") +
              meshes.at(step.to.mesh).axes[static_cast<std::size_t>(axis)].name;
    if (!axes.empty()) text += "(" + axes + ")";
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace foreshard::reshard::internal
