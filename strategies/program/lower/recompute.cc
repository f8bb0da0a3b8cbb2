#include "strategies/program/lower/recompute.h"

#include <algorithm>
#include <map>

#include "strategies/graph/backward.h"
#include "strategies/graph/operators/build.h"

namespace foreshard::lower {

std::vector<std::size_t> recomputed_operators(const Graph& forward,
                                              const Recomputation& recomputation) {
  std::vector<std::size_t> again;
  std::set<TensorId> made;  // and given up
  for (std::size_t i = 0; i < forward.operators.size(); ++i) {
    const Operator& op = forward.operators[i];
    const bool is_named =
        recomputation.how == Recompute::kFull ||
        (recomputation.how == Recompute::kSelective &&
         std::ranges::find(recomputation.parts, op.part) != recomputation.parts.end());
    if (!is_named && !(is_view(op) && made.contains(op.inputs.front()))) continue;
    again.push_back(i);
    if (!keeps_results(op.part)) made.insert(op.outputs.begin(), op.outputs.end());
  }
  return again;
}

std::set<TensorId> kept_tensors(const Graph& forward, const Graph& backward,
                                const Recomputation& recomputation) {
  if (recomputation.how == Recompute::kFull) return {forward.inputs.begin(), forward.inputs.end()};
  const auto storage = storages_of(forward);
  std::set<TensorId> kept;
  std::map<TensorId, Part> made;  // again, by which part
  for (const std::size_t i : recomputed_operators(forward, recomputation)) {
    const Operator& op = forward.operators[i];
    for (const TensorId id : op.inputs)
      if (!made.contains(id) && forward[id].role == TensorRole::kActivation)
        kept.insert(storage[id.index()]);
    for (const TensorId id : op.outputs) made[id] = op.part;
  }
  for (const Operator& op : backward.operators) {
    for (const TensorId id : op.inputs) {
      if (id.index() >= storage.size() || forward[id].role != TensorRole::kActivation) continue;
      const auto made_by = made.find(id);
      const bool is_made_again =
          made_by != made.end() && (made_by->second == op.part || !keeps_results(made_by->second));
      if (!is_made_again) kept.insert(storage[id.index()]);
    }
  }
  return kept;
}

}  // namespace foreshard::lower
