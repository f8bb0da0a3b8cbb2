// Functions of the step plan's types (step_plan.h): groups of parameters, lanes. Planners, verify,
// lowering and the search call them. Sizes are elements on one rank.
#include "strategies/plan/step_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/check.h"

#include "strategies/graph/mesh_axes.h"

namespace foreshard::plan {

const Block& PlannedModel::block_of(std::int32_t unit) const {
  return blocks[static_cast<std::size_t>(units[static_cast<std::size_t>(unit)].block)];
}

UnitRange PlannedModel::with_backward(UnitRange of) const {
  while (of.count > 0 && !block_of(of.first).has_backward) {
    ++of.first;
    --of.count;
  }
  return of;
}

std::vector<ParameterGroup> PlannedModel::own_groups(std::int32_t unit) const {
  std::map<std::vector<Axis>, ParameterGroup> groups;
  for (const ParameterGroup& group : block_of(unit).groups) {
    ParameterGroup& sum = groups[group.over];
    sum.over = group.over;
    sum.elements += group.elements;
    sum.quantized += group.quantized;
    sum.frozen += group.frozen;
    sum.reduced_inside += group.reduced_inside;
    sum.tensors += group.tensors;
    for (const MatrixGroup& one : group.matrices) add_matrices(sum.matrices, one);
  }
  if (tie && tie->reads_copy(unit)) {
    const auto group = groups.find(tie->over);
    FORESHARD_CHECK(group != groups.end() && group->second.elements >= tie->elements);
    group->second.elements -= tie->elements;
    if (tie->is_frozen) group->second.frozen -= tie->elements;
    if (group->second.tensors > 0) --group->second.tensors;
  }
  std::vector<ParameterGroup> list;
  list.reserve(groups.size());
  for (auto& [over, group] : groups) list.push_back(std::move(group));
  return list;
}

std::vector<ParameterGroup> PlannedModel::cut_groups(
    const std::vector<ParameterGroup>& groups) const {
  std::vector<ParameterGroup> cut = by_shards(groups, mesh);
  std::erase_if(cut, [](const ParameterGroup& group) { return group.over.empty(); });
  return cut;
}

std::vector<ParameterGroup> by_shards(const std::vector<ParameterGroup>& groups,
                                      const std::vector<MeshAxis>& mesh) {
  std::map<std::vector<Axis>, ParameterGroup> found;
  for (const ParameterGroup& group : groups) {
    std::vector<Axis> over = cut_axes(mesh, group.over);
    if (ways(over, mesh) == 1) over.clear();
    ParameterGroup& sum = found[over];
    sum.over = std::move(over);
    sum.elements += group.elements;
    sum.quantized += group.quantized;
    sum.frozen += group.frozen;
    sum.tensors += group.tensors;
    for (const MatrixGroup& one : group.matrices) add_matrices(sum.matrices, one);
  }
  std::vector<ParameterGroup> list;
  for (auto& [over, group] : found)
    if (group.elements > 0) list.push_back(std::move(group));
  return list;
}

std::vector<ParameterGroup> trained_alone(std::vector<ParameterGroup> groups) {
  for (ParameterGroup& group : groups) {
    group.elements -= group.frozen;
    group.quantized = std::max<std::int64_t>(group.quantized - group.frozen, 0);
    group.frozen = 0;
  }
  std::erase_if(groups, [](const ParameterGroup& group) { return group.elements == 0; });
  return groups;
}

Lane lane_of(const Action& action) {
  const bool is_forward = action.direction == Direction::kForward;
  switch (action.kind) {
    case ActionKind::kPass:
    case ActionKind::kOptimizer:
      return Lane::kCompute;
    case ActionKind::kGather:
    case ActionKind::kReduce:
      return Lane::kData;
    case ActionKind::kReduceCopies:
      return Lane::kModel;
    case ActionKind::kSend:
      if (action.returns)
        return is_forward ? Lane::kSendForwardReturning : Lane::kSendBackwardReturning;
      return is_forward ? Lane::kSendForward : Lane::kSendBackward;
    case ActionKind::kReceive:
      if (action.returns)
        return is_forward ? Lane::kReceiveForwardReturning : Lane::kReceiveBackwardReturning;
      return is_forward ? Lane::kReceiveForward : Lane::kReceiveBackward;
    case ActionKind::kOffload:
    case ActionKind::kOffloadGradients:
      return Lane::kToHost;
    case ActionKind::kFetch:
      return Lane::kFromHost;
    case ActionKind::kSync:
      break;
  }
  return Lane::kHost;
}

}  // namespace foreshard::plan
