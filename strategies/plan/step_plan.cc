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
  const std::vector<ParameterGroup>& groups = block_of(unit).groups;
  return tie && tie->reads_copy(unit) ? without_tie(groups, *tie) : by_axes(groups);
}

std::vector<ParameterGroup> without_tie(const std::vector<ParameterGroup>& groups,
                                        const TiedWeights& tie) {
  std::vector<ParameterGroup> own = by_axes(groups);
  const auto group = std::ranges::find(own, tie.over, &ParameterGroup::over);
  FORESHARD_CHECK(group != own.end() && group->elements >= tie.elements);
  group->elements -= tie.elements;
  if (tie.is_frozen) group->frozen -= tie.elements;
  if (group->tensors > 0) --group->tensors;
  return own;
}

std::vector<ParameterGroup> by_axes(const std::vector<ParameterGroup>& groups) {
  std::map<std::vector<Axis>, ParameterGroup> merged;
  for (const ParameterGroup& group : groups) {
    ParameterGroup& sum = merged[group.over];
    sum.over = group.over;
    sum.elements += group.elements;
    sum.quantized += group.quantized;
    sum.frozen += group.frozen;
    sum.reduced_inside += group.reduced_inside;
    sum.tensors += group.tensors;
    for (const MatrixGroup& one : group.matrices) add_matrices(sum.matrices, one);
  }
  std::vector<ParameterGroup> list;
  list.reserve(merged.size());
  for (auto& [over, group] : merged) list.push_back(std::move(group));
  return list;
}

std::vector<ParameterGroup> cut_groups(const std::vector<ParameterGroup>& groups,
                                       const std::vector<MeshAxis>& mesh) {
  std::vector<ParameterGroup> cut = by_shards(groups, mesh);
  std::erase_if(cut, [](const ParameterGroup& group) { return group.over.empty(); });
  return cut;
}

std::vector<ParameterGroup> by_shards(const std::vector<ParameterGroup>& groups,
                                      const std::vector<MeshAxis>& mesh) {
  std::vector<ParameterGroup> cut = groups;
  for (ParameterGroup& group : cut) {
    group.over = cut_axes(mesh, group.over);
    if (ways(group.over, mesh) == 1) group.over.clear();
    group.reduced_inside = 0;
  }
  cut = by_axes(cut);
  std::erase_if(cut, [](const ParameterGroup& group) { return group.elements <= 0; });
  return cut;
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

Target target_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::kPass:
    case ActionKind::kOffload:
    case ActionKind::kFetch:
      return Target::kUnits;
    case ActionKind::kGather:
    case ActionKind::kReduce:
    case ActionKind::kOffloadGradients:
      return Target::kBucket;
    case ActionKind::kReduceCopies:
      return Target::kCopies;
    case ActionKind::kSend:
    case ActionKind::kReceive:
      return Target::kCrossing;
    case ActionKind::kOptimizer:
      return Target::kRole;
    case ActionKind::kSync:
      break;
  }
  return Target::kNone;
}

bool of_one_unit(const StateSharding& states, const Action& action) {
  if (target_of(action.kind) != Target::kBucket) return false;
  return action.kind == ActionKind::kGather ? states.gather != StateSharding::Gather::kEndOfStep
                                            : states.reduce != StateSharding::Reduce::kEndOfStep;
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
