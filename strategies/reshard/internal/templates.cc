#include <algorithm>

#include "strategies/reshard/internal/paths.h"

namespace foreshard::reshard::internal {
namespace {

bool partial_over(const Attribute& attribute, Axis axis) {
  return std::ranges::find(attribute.partial, axis, &Partial::axis) != attribute.partial.end();
}

}  // namespace

MeshAttribute Templates::canonical_at(const MeshAttribute& place) const {
  return {place.mesh, canonical(place.attribute, grid_at(place.mesh))};
}

// Axes on which `place` is replicated and which `wanted` does not split either.
std::vector<Axis> Templates::replicated_axes(const MeshAttribute& place,
                                             const Attribute& wanted) const {
  std::vector<Axis> axes;
  const Grid grid = grid_at(place.mesh);
  for (Axis axis = 0; static_cast<std::size_t>(axis) < grid.axes.size(); ++axis)
    if (grid.size(axis) > 1 && dim_of(place.attribute, axis) < 0 && dim_of(wanted, axis) < 0 &&
        !partial_over(place.attribute, axis))
      axes.push_back(axis);
  return axes;
}

void Templates::append_pad(Draft& draft, const MeshAttribute& at, const MeshAttribute& to) const {
  const auto pad = pad_to(at.attribute, to.attribute, grid_at(to.mesh));
  FORESHARD_CHECK(pad.has_value());
  if (!pad->empty())
    append(draft, {.primitive = Primitive::kPad, .from = at, .to = to, .axes = *pad});
}

void Templates::append_transfer(Draft& draft, const MeshAttribute& from,
                                const MeshAttribute& to) const {
  if (from == to) return;
  DraftStep step{.primitive = Primitive::kTransfer, .from = from, .to = to, .axes = {}};
  const Step whole = pricer_.step_of(step);
  if (volume_of(whole, pricer_.tensor()).exact_total == Bytes{}) {
    step.primitive = Primitive::kSlice;
    if (from.mesh == to.mesh) {
      for (Axis axis = 0; static_cast<std::size_t>(axis) < whole.to.mesh.axes.size(); ++axis)
        if (dim_of(from.attribute, axis) != dim_of(to.attribute, axis)) step.axes.push_back(axis);
    }
  }
  append(draft, std::move(step));
}

std::vector<Templates::DraftEnd> Templates::beginnings(const MeshAttribute& given) const {
  const MeshAttribute from = canonical_at(given);
  const Grid grid = grid_at(from.mesh);
  // Parks each of `axes`; empty if the tensor has no dimensions.
  const auto cut = [&](Attribute at,
                       const std::vector<Axis>& axes) -> std::optional<MeshAttribute> {
    std::optional<Attribute> next = std::move(at);
    for (const Axis axis : axes)
      if (next) next = parked(*next, grid, axis, *next);
    if (!next) return std::nullopt;
    return MeshAttribute{from.mesh, *std::move(next)};
  };
  std::vector<DraftEnd> result;
  const Attribute plain = without_partial(from.attribute);
  if (from.attribute.partial.empty()) {
    result.push_back({.draft = {}, .place = from});
    const auto axes = replicated_axes(from, from.attribute);
    if (const auto sliced = cut(plain, axes); sliced && !axes.empty()) {
      DraftEnd& end = result.emplace_back(DraftEnd{.draft = {}, .place = *sliced});
      append(end.draft,
             {.primitive = Primitive::kSlice, .from = from, .to = *sliced, .axes = axes});
    }
    return result;
  }
  std::vector<MeshAttribute> goals;
  if (auto scattered = cut(plain, axes_of(from.attribute.partial)))
    goals.push_back(*std::move(scattered));
  goals.push_back({from.mesh, plain});
  for (const MeshAttribute& goal : goals)
    for (Draft& draft : cheapest_paths(from, goal, 1, kNoLimit, pricer_, failures_))
      result.push_back({.draft = std::move(draft), .place = goal});
  return result;
}

// The ranks of `place` with coordinate 0 on the axes `without`, which it does not split.
MeshAttribute Templates::part_of(const MeshAttribute& place,
                                 const std::vector<Axis>& without) const {
  const ProcessMesh& mesh = meshes_.at(place.mesh);
  ProcessMesh part;
  std::vector<Axis> number(mesh.axes.size(), -1);
  for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
    if (contains(without, static_cast<Axis>(a))) continue;
    number[a] = static_cast<Axis>(part.axes.size());
    part.axes.push_back(mesh.axes[a]);
  }
  for (std::int64_t i = 0; i < mesh.size(); ++i)
    if (std::ranges::all_of(without, [&](Axis axis) { return coordinate_of(mesh, i, axis) == 0; }))
      part.ranks.push_back(mesh.ranks[static_cast<std::size_t>(i)]);
  Attribute attribute = place.attribute;
  for (auto& dim : attribute.dims)
    for (Axis& axis : dim) axis = number[static_cast<std::size_t>(axis)];
  return {meshes_.add(std::move(part)), std::move(attribute)};
}

std::optional<Templates::DraftEnd> Templates::ending(const MeshAttribute& padless,
                                                     const MeshAttribute& to,
                                                     const std::vector<Axis>& gather,
                                                     const std::vector<Axis>& broadcast) const {
  const Grid grid = grid_at(to.mesh);
  MeshAttribute cut = padless;
  for (const Axis axis : gather) {
    auto next = parked(cut.attribute, grid, axis, cut.attribute);
    if (!next) return std::nullopt;
    cut.attribute = *std::move(next);
  }
  DraftEnd end{.draft = {}, .place = cut};
  if (!broadcast.empty()) {
    end.place = part_of(cut, broadcast);
    append(end.draft,
           {.primitive = Primitive::kBroadcast, .from = end.place, .to = cut, .axes = broadcast});
  }
  if (!gather.empty())
    append(end.draft,
           {.primitive = Primitive::kAllGather, .from = cut, .to = padless, .axes = gather});
  append_pad(end.draft, padless, to);
  return end;
}

std::vector<Templates::DraftEnd> Templates::endings(const MeshAttribute& given,
                                                    Effort effort) const {
  const MeshAttribute to = canonical_at(given);
  const Grid grid = grid_at(to.mesh);
  // A pad needs each value only once, so the ranks of its group may hold a part each.
  MeshAttribute padless{to.mesh, without_partial(to.attribute)};
  for (const Partial& partial : to.attribute.partial)
    if (auto cut = parked(padless.attribute, grid, partial.axis, padless.attribute))
      padless.attribute = *std::move(cut);
  std::vector<Axis> free;
  for (const Axis axis : replicated_axes(padless, padless.attribute))
    if (!partial_over(to.attribute, axis)) free.push_back(axis);

  std::vector<DraftEnd> result;
  const auto add = [&](const std::vector<Axis>& gather, const std::vector<Axis>& broadcast) {
    if (auto end = ending(padless, to, gather, broadcast)) result.push_back(*std::move(end));
  };
  add({}, {});
  if (free.empty()) return result;
  add(free, {});
  if (effort == Effort::kFew) return result;
  add({}, free);
  if (free.size() == 1) return result;
  for (const Axis axis : free) {
    std::vector<Axis> others = free;
    std::erase(others, axis);
    add({axis}, {});
    add({}, {axis});
    add({axis}, others);
  }
  return result;
}

std::optional<Draft> Templates::joined(const DraftEnd& begin, const DraftEnd& end) const {
  Draft draft = begin.draft;
  append_transfer(draft, begin.place, end.place);
  // Data that every rank already has need not be cut to be gathered.
  if (!draft.steps.empty() && !end.draft.steps.empty() &&
      draft.steps.back().primitive == Primitive::kSlice &&
      end.draft.steps.front().primitive == Primitive::kAllGather)
    return std::nullopt;
  for (const DraftStep& step : end.draft.steps) append(draft, step);
  return draft;
}

std::optional<Draft> Templates::by_root(const DraftEnd& begin, const MeshAttribute& given) const {
  const MeshAttribute to = canonical_at(given);
  const ProcessMesh& mesh = meshes_.at(to.mesh);
  const auto& sources = meshes_.at(begin.place.mesh).ranks;
  // A designated rank of the target group (R0.3), preferably one that holds a part already.
  std::vector<std::int32_t> sorted = sources;
  std::ranges::sort(sorted);
  auto root = std::ranges::find_if(mesh.ranks, [&](std::int32_t rank) {
    return std::binary_search(sorted.begin(), sorted.end(), rank);
  });
  if (root == mesh.ranks.end()) root = mesh.ranks.begin();

  const Grid grid = grid_at(to.mesh);
  std::vector<Axis> axes;
  for (Axis axis = 0; static_cast<std::size_t>(axis) < grid.axes.size(); ++axis)
    if (grid.size(axis) > 1) axes.push_back(axis);
  const Attribute whole = replicated(grid.shape.size());
  Draft draft = begin.draft;
  MeshAttribute at{to.mesh, whole};
  if (!axes.empty()) {
    const MeshAttribute there{meshes_.add({.axes = {}, .ranks = {*root}}), whole};
    append_transfer(draft, begin.place, there);
    append(draft, {.primitive = Primitive::kBroadcast, .from = there, .to = at, .axes = axes});
  } else {
    append_transfer(draft, begin.place, at);
  }
  std::vector<Axis> split;
  for (const auto& dim : to.attribute.dims) split.insert(split.end(), dim.begin(), dim.end());
  std::ranges::sort(split);
  const MeshAttribute cut{to.mesh, without_partial(to.attribute)};
  if (!split.empty())
    append(draft, {.primitive = Primitive::kSlice, .from = at, .to = cut, .axes = split});
  append_pad(draft, cut, to);
  return draft;
}

std::optional<Draft> Templates::gather_and_slice(const MeshAttribute& from,
                                                 const MeshAttribute& to) const {
  const Grid grid = grid_at(from.mesh);
  Draft draft;
  MeshAttribute at = from;
  const auto then = [&](Primitive primitive, std::vector<Axis> axes, Attribute next) {
    if (axes.empty()) return;
    std::ranges::sort(axes);
    MeshAttribute place{at.mesh, std::move(next)};
    append(draft, {.primitive = primitive, .from = at, .to = place, .axes = std::move(axes)});
    at = std::move(place);
  };
  Attribute reduced = at.attribute;
  std::vector<Axis> summed;
  std::erase_if(reduced.partial, [&](const Partial& partial) {
    const bool keep =
        std::ranges::find(to.attribute.partial, partial) != to.attribute.partial.end();
    if (!keep) summed.push_back(partial.axis);
    return !keep;
  });
  then(Primitive::kAllReduce, summed, std::move(reduced));

  Attribute gathered = at.attribute;
  std::vector<Axis> moved;
  for (std::size_t d = 0; d < grid.shape.size(); ++d) {
    const auto& dim = at.attribute.dims[d];
    const std::size_t stays = settled(at.attribute, to.attribute, grid, d);
    moved.insert(moved.end(), dim.begin() + static_cast<std::ptrdiff_t>(stays), dim.end());
    if (stays < dim.size()) gathered = without_minor(gathered, grid, d, dim.size() - stays);
  }
  then(Primitive::kAllGather, moved, std::move(gathered));

  std::vector<Axis> missing;
  for (std::size_t d = 0; d < grid.shape.size(); ++d) {
    const auto& dim = to.attribute.dims[d];
    missing.insert(missing.end(),
                   dim.begin() + static_cast<std::ptrdiff_t>(at.attribute.dims[d].size()),
                   dim.end());
  }
  Attribute sliced = to.attribute;
  sliced.partial = at.attribute.partial;
  then(Primitive::kSlice, missing, std::move(sliced));
  append_pad(draft, at, to);
  return draft;
}

std::optional<Draft> Templates::permuted(const MeshAttribute& from, const MeshAttribute& to) const {
  const Grid grid = grid_at(from.mesh);
  MeshAttribute before = from;
  std::vector<Axis> sliced;
  for (Axis axis = 0; static_cast<std::size_t>(axis) < grid.axes.size(); ++axis) {
    const auto dim = dim_of(to.attribute, axis);
    if (dim < 0 || dim_of(from.attribute, axis) >= 0) continue;
    auto next = with_minor(before.attribute, grid, static_cast<std::size_t>(dim), axis,
                           to.attribute, Cut::kEven);
    if (!next) continue;
    before.attribute = *std::move(next);
    sliced.push_back(axis);
  }
  MeshAttribute after = to;
  std::vector<Axis> extra;
  for (std::size_t d = 0; d < grid.shape.size(); ++d) {
    for (const Axis axis : before.attribute.dims[d]) {
      if (dim_of(to.attribute, axis) >= 0) continue;
      auto next = with_minor(after.attribute, grid, d, axis, before.attribute, Cut::kEven);
      if (!next) continue;
      after.attribute = *std::move(next);
      extra.push_back(axis);
    }
  }
  if (sliced.empty() && extra.empty()) return std::nullopt;
  std::ranges::sort(extra);
  Draft draft;
  if (!sliced.empty())
    append(draft, {.primitive = Primitive::kSlice, .from = from, .to = before, .axes = sliced});
  append_transfer(draft, before, after);
  if (!extra.empty())
    append(draft, {.primitive = Primitive::kAllGather, .from = after, .to = to, .axes = extra});
  return draft;
}

std::vector<Draft> Templates::on_one_mesh(const MeshAttribute& given_from,
                                          const MeshAttribute& given_to) const {
  const MeshAttribute from = canonical_at(given_from);
  const MeshAttribute to = canonical_at(given_to);
  std::vector<Draft> drafts;
  if (from == to) return drafts;
  const auto add = [&](std::optional<Draft> draft) {
    if (draft) drafts.push_back(*std::move(draft));
  };
  add(gather_and_slice(from, to));
  const auto begins = beginnings(from);
  for (const DraftEnd& end : endings(to, Effort::kFew))
    for (const DraftEnd& begin : begins) add(joined(begin, end));
  if (!begins.empty()) add(by_root(begins.front(), to));
  if (from.attribute.partial.empty() && to.attribute.partial.empty()) add(permuted(from, to));
  return drafts;
}

std::vector<Draft> Templates::between(const MeshAttribute& from, const MeshAttribute& to) const {
  std::vector<Draft> drafts;
  const auto begins = beginnings(from);
  for (const DraftEnd& end : endings(to, Effort::kAll))
    for (const DraftEnd& begin : begins)
      if (auto draft = joined(begin, end)) drafts.push_back(*std::move(draft));
  if (!begins.empty())
    if (auto draft = by_root(begins.front(), to)) drafts.push_back(*std::move(draft));
  return drafts;
}

}  // namespace foreshard::reshard::internal
