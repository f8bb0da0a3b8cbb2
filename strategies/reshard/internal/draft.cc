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
  // The bytes depend on the mesh's axes only: a layout without its ranks is enough.
  const ProcessMesh axes{.axes = meshes_.at(step.to.mesh).axes};
  const Step rankless{.primitive = step.primitive,
                      .from = {.mesh = axes, .attribute = step.from.attribute},
                      .to = {.mesh = axes, .attribute = step.to.attribute},
                      .axes = step.axes};
  const Bytes bytes = logical_bytes(rankless, tensor_);
  std::vector<std::int64_t> extents;
  for (const Layout* layout : {&rankless.from, &rankless.to}) {
    const Slices slices(*layout, tensor_.shape);
    for (std::size_t d = 0; d < tensor_.shape.size(); ++d) extents.push_back(slices.widest(d));
  }
  Key key{step.primitive, step.to.mesh, step.axes, bytes.in_base(), std::move(extents)};
  const auto known = collectives_.find(key);
  if (known != collectives_.end()) return known->second;
  return collectives_.emplace(std::move(key), price_(step_of(step))).first->second;
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
