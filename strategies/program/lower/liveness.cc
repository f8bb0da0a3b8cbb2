#include "strategies/program/lower/liveness.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/operators/build.h"
#include "strategies/program/lower/eager.h"
#include "strategies/program/lower/recompute.h"
#include "strategies/program/lower/ring.h"

namespace foreshard::lower {
namespace {

struct OperatorStep {
  const ShardedGraph* sharded;
  std::size_t op;
};

// Whether the operator overwrites what it reads. The loss does so if the types are equal: it writes
// its exponentials over the logits, and gradients over the exponentials, if it does not keep those.
bool works_in_place(const Graph& graph, const Operator& op) {
  return find_operator(op.type)->in_place &&
         !(op.type == "vocabulary_cross_entropy_gradient" && op.settings.flag("keeps")) &&
         graph[op.inputs.front()].dtype == graph[op.outputs.back()].dtype;
}

std::vector<OperatorStep> steps_of(const ShardedGraph& sharded) {
  std::vector<OperatorStep> steps;
  for (std::size_t i = 0; i < sharded.graph->operators.size(); ++i) steps.push_back({&sharded, i});
  return steps;
}

// Sweeps over the operators of a pass. Tensors that share memory count as one: a view is the tensor
// that it views, and the result of an operator that works in place is its first input.
class LivenessSweep {
 public:
  LivenessSweep(const ShardedGraph& forward, std::vector<OperatorStep> steps,
                const BackwardWork& how)
      : steps_(std::move(steps)),
        how_(how),
        storage_(storages_of(*forward.graph)),
        change_(steps_.size() + 2) {}

  // Says that the tensor is in memory before the first operator.
  void present(const ShardedGraph& sharded, TensorId id) {
    if ((*sharded.graph)[id].carried) return;
    open(root(*sharded.graph, id),
         local_bytes((*sharded.graph)[id], sharded.attributes[id.index()], sharded.mesh), 0);
  }

  // Says the same of what operators of the forward graph keep beside their operands.
  void present(const std::map<std::string, Bytes>& beside) {
    for (const auto& [name, bytes] : beside) beside_[name] = {bytes};
  }

  // Peak over all operators; `outlasting` are in use until the end, as is what the operators `kept`
  // keep beside their operands.
  Bytes peak(const std::vector<TensorId>& outlasting,
             const std::map<std::string, Bytes>& kept = {}) {
    for (std::size_t s = 0; s < steps_.size(); ++s) run(s);
    for (auto& [name, one] : beside_) {
      if (kept.contains(name)) one.last = steps_.size();
      close(one);
    }
    for (const TensorId id : outlasting) {
      const auto found = live_.find(id.index() < storage_.size() ? storage_[id.index()] : id);
      if (found != live_.end()) found->second.last = steps_.size();
    }
    for (const auto& [id, one] : live_) close(one);
    Bytes now;
    Bytes most;
    for (std::size_t s = 0; s <= steps_.size(); ++s) {
      now += change_[s];
      most = std::max(most, now);
    }
    return most;
  }

 private:
  struct Lifetime {
    Bytes bytes;
    std::size_t from = 0;
    std::size_t last = 0;
  };

  // Tensors of the forward graph keep their ids in the backward graph.
  TensorId root(const Graph& graph, TensorId id) {
    if (id.index() < storage_.size()) return storage_[id.index()];
    auto& known = later_storage_[&graph];
    if (known.empty()) known = storages_of(graph);
    const TensorId viewed = known[id.index()];
    const TensorId first = viewed.index() < storage_.size() ? storage_[viewed.index()] : viewed;
    const auto written = in_place_.find(first);
    return written == in_place_.end() ? first : written->second;
  }

  void open(TensorId id, Bytes bytes, std::size_t at) { live_[id] = {bytes, at, at}; }
  void close(const Lifetime& one) {
    change_[one.from] += one.bytes;
    change_[one.last + 1] -= one.bytes;
  }
  void during(Bytes bytes, std::size_t from, std::size_t last) { close({bytes, from, last}); }

  void run(std::size_t s) {
    const ShardedGraph& sharded = *steps_[s].sharded;
    const Graph& graph = *sharded.graph;
    const Operator& op = graph.operators[steps_[s].op];
    const auto ring = ring_of(sharded, steps_[s].op);
    if (ring) go_round(sharded, *ring, s);
    for (const std::int32_t c : sharded.operators[steps_[s].op].conversions) convert(sharded, c, s);
    for (const TensorId id : op.inputs) {
      const auto read = live_.find(root(graph, id));
      if (read != live_.end()) read->second.last = s;
    }
    if (is_view(op)) return;
    for (std::size_t o = 0; o < op.outputs.size(); ++o) make(s, o, ring);
    take_beside(sharded, s);
  }

  // An operator frees what the one that it is the gradient of has kept.
  void take_beside(const ShardedGraph& sharded, std::size_t s) {
    const Operator& op = sharded.graph->operators[steps_[s].op];
    const BesideOperands beside = beside_operands(sharded, steps_[s].op);
    during(beside.work * (computes_loss(op) ? piece((*sharded.graph)[op.inputs.front()]) : 1), s,
           s);
    if (beside.kept > 0_B) beside_[op.name] = {beside.kept, s, s};
    if (!op.name.starts_with("d.")) return;
    const auto kept = beside_.find(op.name.substr(2));
    if (kept != beside_.end()) kept->second.last = s;
  }

  // Forward, the keys of all ranks and the results of each step stay until the end. Backward, keys
  // have two buffers that take turns, and so do their gradients, whose last buffer is the result.
  // Source: as ring.h.
  void go_round(const ShardedGraph& sharded, const Ring& ring, std::size_t s) {
    const auto others = static_cast<double>(ways(ring.axes, sharded.mesh) - 1);
    converted_.insert({&sharded, ring.keys});
    if (ring.gradients) {
      converted_.insert({&sharded, *ring.gradients});
      during(2 * ring.key_bytes + ring.gradient_bytes, s, s);
      return;
    }
    const std::size_t i = steps_[s].op;
    const Operator& op = sharded.graph->operators[i];
    const Bytes result = local_bytes((*sharded.graph)[op.outputs[0]],
                                     sharded.operators[i].operands[op.inputs.size()], sharded.mesh);
    during(others * (ring.key_bytes + result), s, s);
  }

  // A conversion is made before its first reader and stays until its last one.
  void convert(const ShardedGraph& sharded, std::int32_t c, std::size_t s) {
    if (!converted_.insert({&sharded, c}).second) return;
    std::size_t last = s;
    for (std::size_t later = s; later < steps_.size(); ++later) {
      if (steps_[later].sharded != &sharded) continue;
      const auto& needs = sharded.operators[steps_[later].op].conversions;
      if (std::ranges::find(needs, c) != needs.end()) last = later;
    }
    const Conversion& wish = sharded.conversions[static_cast<std::size_t>(c)];
    during(local_bytes((*sharded.graph)[wish.tensor], wish.to, sharded.mesh), s, last);
  }

  void make(std::size_t s, std::size_t o, const std::optional<Ring>& ring) {
    const ShardedGraph& sharded = *steps_[s].sharded;
    const Graph& graph = *sharded.graph;
    const std::size_t i = steps_[s].op;
    const Operator& op = graph.operators[i];
    const TensorId id = op.outputs[o];
    const Tensor& tensor = graph[id];
    const Attribute& made = sharded.operators[i].operands[op.inputs.size() + o];
    if (tensor.role == TensorRole::kParameterGradient && !is_read(sharded, id)) {
      if (op.type == "gradient_accumulate") return;  // booked elsewhere
      const bool takes_room = !op.accumulates || !how_.placeholders_kept;
      const DType type =
          tensor.gradient_of.valid() ? graph[tensor.gradient_of].dtype : tensor.dtype;
      if (takes_room)
        during(size_of(type) * static_cast<double>(local_elements(tensor, made, sharded.mesh)), s,
               s);
      return;
    }
    if (tensor.role == TensorRole::kParameter) return;
    if (o + 1 == op.outputs.size() && works_in_place(graph, op)) {
      in_place_[id] = root(graph, op.inputs[0]);
      if (id.index() < storage_.size()) storage_[id.index()] = in_place_[id];
      return;
    }
    const bool is_passed_on = ring && ring->gradients && o == 1;
    Bytes bytes = is_passed_on ? ring->gradient_bytes : local_bytes(tensor, made, sharded.mesh);
    if (is_of_logits(sharded, id)) bytes = piece(tensor) * bytes;
    for (const std::int32_t c : sharded.after_operator[i]) {
      if (is_passed_on || sharded.conversions[static_cast<std::size_t>(c)].tensor != id) continue;
      during(bytes, s, s);
      bytes = local_bytes(tensor, sharded.attributes[id.index()], sharded.mesh);
    }
    const TensorId where = root(graph, id);
    if (const auto before = live_.find(where); before != live_.end()) close(before->second);
    open(where, bytes, s);
  }

  // The part of the logits that is in memory at a time.
  double piece(const Tensor& logits) const {
    const auto words = static_cast<double>(logits.shape.back());
    return how_.loss_words == 0 ? 1 : std::min(1.0, static_cast<double>(how_.loss_words) / words);
  }

  // Whether the tensor is as large as the logits: these, exponentials and gradients.
  bool is_of_logits(const ShardedGraph& sharded, TensorId id) {
    const auto [known, is_new] = of_logits_.try_emplace(&sharded);
    if (is_new)
      for (const Operator& op : sharded.graph->operators)
        if (computes_loss(op)) known->second.insert({op.inputs.front(), op.outputs.back()});
    return known->second.contains(id);
  }

  bool is_read(const ShardedGraph& sharded, TensorId id) {
    auto& read = read_[&sharded];
    if (read.empty())
      for (const Operator& op : sharded.graph->operators)
        read.insert(op.inputs.begin(), op.inputs.end());
    return read.contains(id);
  }

  std::vector<OperatorStep> steps_;
  BackwardWork how_;
  std::vector<TensorId> storage_;  // tensor of the forward graph -> the tensor whose memory it has
  std::map<const Graph*, std::vector<TensorId>> later_storage_;
  std::map<TensorId, TensorId> in_place_;
  std::map<TensorId, Lifetime> live_;
  std::map<std::string, Lifetime> beside_;  // forward operator -> what it keeps beside operands
  std::set<std::pair<const ShardedGraph*, std::int32_t>> converted_;
  std::map<const ShardedGraph*, std::set<TensorId>> read_;
  std::map<const ShardedGraph*, std::set<TensorId>> of_logits_;
  // operator -> bytes allocated for it, less bytes freed after the one before.
  std::vector<Bytes> change_;
};

// operator of the backward graph (one entry more: its end) -> operators recomputed just before it.
// An operator is recomputed before the first reader of its results, which may read them through
// other recomputed operators. Where its results are kept or nobody reads them, it is recomputed
// before the first backward operator of the same part.
std::vector<std::vector<std::size_t>> recomputed_before(const Graph& forward, const Graph& backward,
                                                        const std::set<TensorId>& kept,
                                                        const Recomputation& recomputation) {
  const std::vector<std::size_t> again = recomputed_operators(forward, backward, recomputation);
  const std::size_t end = backward.operators.size();
  std::map<TensorId, std::size_t> first_read;
  std::map<LayerPart, std::size_t> first_of_part;
  for (std::size_t i = 0; i < end; ++i) {
    for (const TensorId id : backward.operators[i].inputs) first_read.try_emplace(id, i);
    first_of_part.try_emplace(backward.operators[i].part, i);
  }
  std::vector<std::size_t> when(forward.operators.size(), end);
  for (auto it = again.rbegin(); it != again.rend(); ++it) {
    const Operator& op = forward.operators[*it];
    for (const TensorId out : op.outputs) {
      const auto read = first_read.find(out);
      if (read != first_read.end() && !kept.contains(out))
        when[*it] = std::min(when[*it], read->second);
    }
    const auto own = first_of_part.find(op.part);
    if (own != first_of_part.end() && (when[*it] == end || keeps_results(op.part)))
      when[*it] = std::min(when[*it], own->second);
    for (const TensorId in : op.inputs) {
      const auto known = first_read.try_emplace(in, when[*it]).first;
      known->second = std::min(known->second, when[*it]);
    }
  }
  std::vector<std::vector<std::size_t>> before(end + 1);
  for (const std::size_t i : again) before[when[i]].push_back(i);
  return before;
}

// The operators of a backward pass, without those `left_out` but with the recomputed ones.
std::vector<OperatorStep> with_recomputed(const ShardedGraph& forward, const ShardedGraph& backward,
                                          const std::set<TensorId>& kept,
                                          const Recomputation& recomputation,
                                          const std::vector<bool>& left_out = {}) {
  const auto is_left_out = [&](const OperatorStep& step) {
    return !left_out.empty() && left_out[step.op];
  };
  std::vector<OperatorStep> own = steps_of(backward);
  std::vector<OperatorStep> steps;
  if (recomputation.how == Recompute::kFull) {
    std::erase_if(own, is_left_out);
    steps = steps_of(forward);
    steps.insert(steps.end(), own.begin(), own.end());
    return steps;
  }
  const auto before = recomputed_before(*forward.graph, *backward.graph, kept, recomputation);
  for (std::size_t i = 0; i < before.size(); ++i) {
    for (const std::size_t again : before[i]) steps.push_back({&forward, again});
    if (i < own.size() && !is_left_out(own[i])) steps.push_back(own[i]);
  }
  return steps;
}

Bytes on_top_of(const Kept& kept, const ShardedGraph& forward, Bytes peak) {
  return std::max(Bytes{}, peak - bytes_held(kept, forward));
}

}  // namespace

std::int64_t local_elements(const Tensor& tensor, const Attribute& attribute,
                            const std::vector<MeshAxis>& mesh) {
  std::int64_t count = 1;
  for (const std::int64_t extent : largest_local_shape(tensor.shape, attribute, mesh))
    count *= extent;
  return count;
}

Bytes local_bytes(const Tensor& tensor, const Attribute& attribute,
                  const std::vector<MeshAxis>& mesh) {
  return size_of(tensor.dtype) * static_cast<double>(local_elements(tensor, attribute, mesh));
}

Bytes bytes_held(const std::set<TensorId>& tensors, const ShardedGraph& sharded) {
  Bytes sum;
  for (const TensorId id : tensors)
    if (!(*sharded.graph)[id].carried)
      sum += local_bytes((*sharded.graph)[id], sharded.attributes[id.index()], sharded.mesh);
  return sum;
}

Bytes bytes_held(const Kept& kept, const ShardedGraph& sharded) {
  Bytes sum = bytes_held(kept.tensors, sharded);
  for (const auto& [name, bytes] : kept.beside) sum += bytes;
  return sum;
}

Bytes forward_work(const ShardedGraph& forward, const Kept& kept, const BackwardWork& how) {
  const Graph& graph = *forward.graph;
  LivenessSweep sweep(forward, steps_of(forward), how);
  for (const TensorId id : graph.inputs) sweep.present(forward, id);
  std::set<TensorId> made;
  for (const Operator& op : graph.operators) made.insert(op.outputs.begin(), op.outputs.end());
  std::vector<TensorId> outlasting = graph.outputs;
  for (const TensorId id : kept.tensors) {
    if (!made.contains(id)) sweep.present(forward, id);
    outlasting.push_back(id);
  }
  return on_top_of(kept, forward, sweep.peak(outlasting, kept.beside));
}

Bytes backward_work(const ShardedGraph& forward, const ShardedGraph& backward, const Kept& kept,
                    const BackwardWork& how) {
  std::vector<OperatorStep> steps =
      with_recomputed(forward, backward, kept.tensors, how.recomputation);
  LivenessSweep sweep(forward, std::move(steps), how);
  for (const TensorId id : kept.tensors) sweep.present(forward, id);
  sweep.present(kept.beside);
  for (const TensorId id : backward.graph->inputs) sweep.present(backward, id);
  std::vector<TensorId> outlasting = backward.graph->outputs;
  if (how.recomputation.how == Recompute::kFull)
    outlasting.insert(outlasting.end(), forward.graph->outputs.begin(),
                      forward.graph->outputs.end());
  return on_top_of(kept, forward, sweep.peak(outlasting));
}

namespace {

// What the second part of a backward pass reads that exists before it.
struct WeightPassInputs {
  std::set<TensorId> kept{};           // tensors of the forward graph
  std::set<TensorId> again{};          // recomputed tensors of the forward graph
  std::set<TensorId> made{};           // tensors of the backward graph
  std::set<std::int32_t> converted{};  // conversions of the first part
};

WeightPassInputs found_by_weights(const ShardedGraph& forward, const ShardedGraph& backward,
                                  const std::set<TensorId>& kept,
                                  const std::vector<bool>& weights) {
  const Graph& graph = *backward.graph;
  const std::vector<TensorId> storage = storages_of(*forward.graph);
  const std::vector<TensorId> later = storages_of(graph);
  std::set<std::int32_t> converted;
  std::set<TensorId> own;  // made by the second part
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const auto& needs = backward.operators[i].conversions;
    if (!weights[i]) converted.insert(needs.begin(), needs.end());
    if (weights[i])
      own.insert(graph.operators[i].outputs.begin(), graph.operators[i].outputs.end());
  }
  WeightPassInputs found;
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    if (!weights[i]) continue;
    for (const TensorId id : graph.operators[i].inputs) {
      if (graph[id].role == TensorRole::kParameter || own.contains(id)) continue;
      const auto& needs = backward.operators[i].conversions;
      const auto conversion = std::ranges::find_if(needs, [&](std::int32_t c) {
        return converted.contains(c) &&
               backward.conversions[static_cast<std::size_t>(c)].tensor == id;
      });
      const TensorId root = later[id.index()];
      if (conversion != needs.end())
        found.converted.insert(*conversion);
      else if (root.index() >= storage.size())
        found.made.insert(root);
      else if (kept.contains(storage[root.index()]))
        found.kept.insert(storage[root.index()]);
      else
        found.again.insert(storage[root.index()]);
    }
  }
  return found;
}

}  // namespace

bool computes_loss(const Operator& op) {
  return op.type.starts_with("vocabulary_cross_entropy");
}

SplitWork split_work(const ShardedGraph& forward, const ShardedGraph& backward, const Kept& kept,
                     const std::vector<bool>& weights, const BackwardWork& how) {
  const WeightPassInputs found = found_by_weights(forward, backward, kept.tensors, weights);
  SplitWork work{.kept_for_weight = bytes_held(found.kept, forward),
                 .held = bytes_held(found.again, forward) + bytes_held(found.made, backward)};
  for (const std::int32_t c : found.converted) {
    const Conversion& wish = backward.conversions[static_cast<std::size_t>(c)];
    work.held += local_bytes((*backward.graph)[wish.tensor], wish.to, backward.mesh);
  }

  LivenessSweep first(
      forward, with_recomputed(forward, backward, kept.tensors, how.recomputation, weights), how);
  for (const TensorId id : kept.tensors) first.present(forward, id);
  first.present(kept.beside);
  for (const TensorId id : backward.graph->inputs) first.present(backward, id);
  std::vector<TensorId> outlasting = backward.graph->outputs;
  for (const auto* part : {&found.kept, &found.again, &found.made})
    outlasting.insert(outlasting.end(), part->begin(), part->end());
  work.input = std::max(Bytes{}, first.peak(outlasting) - bytes_held(kept, forward) - work.held);

  std::vector<OperatorStep> steps = steps_of(backward);
  std::erase_if(steps, [&](const OperatorStep& step) { return !weights[step.op]; });
  LivenessSweep second(forward, std::move(steps), how);
  for (const auto* part : {&found.kept, &found.again})
    for (const TensorId id : *part) second.present(forward, id);
  for (const TensorId id : found.made) second.present(backward, id);
  work.weight = std::max(Bytes{}, second.peak({}) - work.kept_for_weight - work.held);
  return work;
}

}  // namespace foreshard::lower
