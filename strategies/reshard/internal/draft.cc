#include "strategies/reshard/internal/draft.h"

#include <algorithm>

namespace foreshard::reshard::internal {

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
    const std::pair<Place, Place> key{step.from, step.to};
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
