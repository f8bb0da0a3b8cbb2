#include "strategies/program/lower/recompute.h"

#include <algorithm>
#include <map>

#include "strategies/graph/backward.h"
#include "strategies/graph/operators/build.h"

namespace foreshard::lower {

namespace {

// Operators of the named parts (for kFull: all operators), and views of what they make.
std::vector<std::size_t> named_operators(const Graph& forward, const Recomputation& recomputation) {
  std::vector<std::size_t> named;
  std::set<TensorId> made;  // results of these operators that are not kept
  for (std::size_t i = 0; i < forward.operators.size(); ++i) {
    const Operator& op = forward.operators[i];
    const bool is_named =
        recomputation.how == Recompute::kFull ||
        (recomputation.how == Recompute::kSelective &&
         std::ranges::find(recomputation.parts, op.part) != recomputation.parts.end());
    if (!is_named && !(is_view(op) && made.contains(op.inputs.front()))) continue;
    named.push_back(i);
    if (!keeps_results(op.part)) made.insert(op.outputs.begin(), op.outputs.end());
  }
  return named;
}

// tensor -> the part of the recomputed operator that makes it.
using RecomputedTensors = std::map<TensorId, LayerPart>;

RecomputedTensors made_by(const Graph& forward, const std::vector<std::size_t>& operators) {
  RecomputedTensors made;
  for (const std::size_t i : operators)
    for (const TensorId id : forward.operators[i].outputs) made[id] = forward.operators[i].part;
  return made;
}

// Whether an operator of the backward pass reads the recomputed tensor rather than a kept one.
bool reads_again(const Operator& op, TensorId id, const RecomputedTensors& made) {
  const auto by = made.find(id);
  return by != made.end() && (by->second == op.part || !keeps_results(by->second));
}

}  // namespace

std::vector<std::size_t> recomputed_operators(const Graph& forward, const Graph& backward,
                                              const Recomputation& recomputation) {
  std::vector<std::size_t> named = named_operators(forward, recomputation);
  const bool by_operator =
      recomputation.how == Recompute::kSelective &&
      std::ranges::find(recomputation.parts, LayerPart::kResidual) != recomputation.parts.end();
  if (!by_operator) return named;
  const RecomputedTensors made = made_by(forward, named);
  std::set<TensorId> read;
  for (const Operator& op : backward.operators)
    for (const TensorId id : op.inputs)
      if (reads_again(op, id, made)) read.insert(id);
  std::vector<std::size_t> again;
  for (auto it = named.rbegin(); it != named.rend(); ++it) {
    const Operator& op = forward.operators[*it];
    const auto is_read = [&](TensorId id) { return read.contains(id); };
    if (std::ranges::none_of(op.outputs, is_read)) continue;
    read.insert(op.inputs.begin(), op.inputs.end());
    again.push_back(*it);
  }
  std::ranges::reverse(again);
  return again;
}

std::set<TensorId> kept_tensors(const Graph& forward, const Graph& backward,
                                const Recomputation& recomputation) {
  if (recomputation.how == Recompute::kFull) return {forward.inputs.begin(), forward.inputs.end()};
  const auto storage = storages_of(forward);
  const std::vector<std::size_t> again = recomputed_operators(forward, backward, recomputation);
  const RecomputedTensors made = made_by(forward, again);
  std::set<TensorId> kept;
  const auto keep = [&](TensorId id) { kept.insert(storage[id.index()]); };
  for (const std::size_t i : again)
    for (const TensorId id : forward.operators[i].inputs)
      if (!made.contains(id) && forward[id].role == TensorRole::kActivation) keep(id);
  for (const Operator& op : backward.operators)
    for (const TensorId id : op.inputs)
      if (id.index() < storage.size() && forward[id].role == TensorRole::kActivation &&
          !reads_again(op, id, made))
        keep(id);
  return kept;
}

}  // namespace foreshard::lower
