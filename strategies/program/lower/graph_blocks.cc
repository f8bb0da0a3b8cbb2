#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"

#include "strategies/graph/operators/build.h"
#include "strategies/parallelism/pipeline.h"
#include "strategies/program/lower/emitter.h"
#include "strategies/program/lower/graph_units.h"
#include "strategies/program/lower/legacy_behavior.h"
#include "strategies/program/lower/liveness.h"
#include "strategies/program/lower/recompute.h"

namespace foreshard::lower {
namespace {

using program::Allocate;
using program::Block;
using program::Free;
using program::MemoryKind;
using program::Task;

// Whether an operator of the backward graph belongs to this forward operator: its name is "d.name"
// or "d.name.part".
bool belongs_to(const std::string& backward, const std::string& forward) {
  const std::string begin = "d." + forward;
  return backward == begin || backward.starts_with(begin + ".");
}

// parameter -> the tensor in which its gradient is complete.
std::map<TensorId, TensorId> gradients_in(const Graph& backward) {
  std::map<TensorId, TensorId> result;
  for (std::size_t t = 0; t < backward.tensors.size(); ++t) {
    const Tensor& tensor = backward.tensors[t];
    if (tensor.role == TensorRole::kParameterGradient && tensor.gradient_of.valid())
      result[tensor.gradient_of] = TensorId{static_cast<std::int64_t>(t)};
  }
  return result;
}

// Moves each task from `first` on to right after the last task that it waits for, so that the host
// launches it there.
void issue_early(Block& block, std::size_t first) {
  const std::size_t count = block.tasks.size();
  std::vector<std::int32_t> anchor(count);
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) {
    order[i] = i;
    anchor[i] = static_cast<std::int32_t>(i);
    if (i < first) continue;
    anchor[i] = -1;
    for (const std::int32_t before : block.tasks[i].after)
      anchor[i] = std::max(anchor[i], anchor[static_cast<std::size_t>(before)]);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return anchor[i]; });
  std::vector<std::int32_t> place(count);
  for (std::size_t i = 0; i < count; ++i) place[order[i]] = static_cast<std::int32_t>(i);
  std::vector<Task> tasks;
  tasks.reserve(count);
  for (const std::size_t i : order) {
    Task task = std::move(block.tasks[i]);
    for (std::int32_t& before : task.after) before = place[static_cast<std::size_t>(before)];
    tasks.push_back(std::move(task));
  }
  block.tasks = std::move(tasks);
}

// Axes over which gradients are partial -> their number of elements.
using Partial = std::map<std::vector<Axis>, std::int64_t>;

std::vector<Axis> partial_axes(const Attribute& attribute, const std::vector<MeshAxis>& mesh) {
  std::vector<Axis> axes = axes_of(attribute.partial);
  std::erase_if(axes, [&](Axis axis) { return mesh[static_cast<std::size_t>(axis)].size == 1; });
  return axes;
}

struct PassOptions {
  Direction direction = Direction::kForward;
  bool overlap = false;        // Overlap::conversions of the Emitter
  Partial* reduced = nullptr;  // if set: gradients are reduced in buckets, and counted here
  std::int64_t times = 1;      // how often a pass of the unit runs this graph
  const std::set<TensorId>* seeds = nullptr;    // gradients that a backward pass begins with
  const std::vector<bool>* left_out = nullptr;  // operators of the other part of a backward pass
  std::set<std::int32_t>* converted = nullptr;  // conversions that the first part has made
  const Strategy* strategy = nullptr;
  const reshard::MeshPlanner* planner = nullptr;
};

// Cuts a pass at its loops and conditions.
class Cutter {
 public:
  Cutter(const ShardedGraph& sharded, std::string name, const PassOptions& options)
      : sharded_(sharded), graph_(*sharded.graph), name_(std::move(name)), options_(options) {
    for (const auto& [parameter, gradient] : gradients_in(graph_)) complete_.insert(gradient);
    if (options_.converted != nullptr) done_ = *options_.converted;
  }

  Pieces run() {
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
      const Operator& op = graph_.operators[i];
      if (options_.left_out != nullptr && (*options_.left_out)[i]) continue;
      if (op.bodies.empty()) {
        selected_.push_back(i);
        continue;
      }
      stretch(sharded_.operators[i].conversions);
      nested(op);
      leading_ = sharded_.after_operator[i];
    }
    stretch({});
    if (options_.converted != nullptr) *options_.converted = done_;
    return std::move(pieces_);
  }

 private:
  // Writes the operators since the last cut as a block.
  void stretch(const std::vector<std::int32_t>& trailing) {
    Block block{.name = count_ == 0 ? name_ : fmt::format("{} ({})", name_, count_ + 1)};
    LaunchCost launching;  // a framework's launch counts are for its own models
    if (options_.strategy != nullptr) launching.captured = options_.strategy->cuda_graphs;
    Emitter emitter(block, {.conversions = options_.overlap}, std::move(launching),
                    *options_.planner);
    if (options_.seeds != nullptr && count_ == 0) seeds(block);
    emitter.convert(sharded_, std::exchange(leading_, {}), done_);
    emitter.emit(sharded_, selected_, done_);
    if (options_.reduced != nullptr) reductions(block, emitter);
    emitter.convert(sharded_, trailing, done_);
    selected_.clear();
    if (block.tasks.empty()) return;
    ++count_;
    pieces_.push_back({.block = std::move(block)});
  }

  // Writes the gradients that the backward pass starts from.
  void seeds(Block& block) const {
    for (const TensorId id : *options_.seeds) {
      const std::int64_t count =
          local_elements(graph_[id], sharded_.attributes[id.index()], sharded_.mesh);
      if (count <= 1) continue;
      block.tasks.push_back(Task{
          .name = "seed." + graph_[id].name,
          .body = Kernel{Pass{.kind = PassKind::kZero, .rows = count, .dtype = graph_[id].dtype}},
          .stream = stream(kComputeStream)});
    }
  }

  void nested(const Operator& op) {
    const bool is_forward = options_.direction == Direction::kForward;
    Piece piece{.key = is_forward ? op.name : op.name.substr(2)};
    if (op.type == "loop") {
      piece.kind = Piece::Kind::kLoop;
      piece.count = op.settings.integer("count");
    } else {
      piece.kind = Piece::Kind::kChoice;
      piece.probability = op.settings.number("probability");
    }
    for (std::size_t b = 0; b < op.bodies.size(); ++b) {
      const auto body = static_cast<std::size_t>(op.bodies[b]);
      PassOptions inner = options_;
      inner.seeds = nullptr;
      inner.times *= piece.count;
      // The gradient of parameters that iterations share is complete after the last iteration.
      if (op.type == "loop" && !op.settings.flag("own_parameters")) inner.reduced = nullptr;
      if (op.type == "condition") inner.reduced = nullptr;
      const std::string branch = op.bodies.size() > 1 ? fmt::format(".{}", b) : "";
      piece.bodies.push_back(
          Cutter(sharded_.bodies[body], fmt::format("{}.{}{}", name_, op.name, branch), inner)
              .run());
    }
    pieces_.push_back(std::move(piece));
  }

  // Adds reductions in buckets. A bucket fills in the order in which gradients become ready, and is
  // reduced when its last gradient is ready.
  void reductions(Block& block, const Emitter& emitter) {
    struct Bucket {
      std::int64_t count = 0;
      std::vector<std::int32_t> after;
    };
    std::map<std::vector<Axis>, Bucket> buckets;
    const Bytes element =
        size_of(options_.strategy->framework->gradients_of(options_.strategy->precision));
    const std::size_t first = block.tasks.size();
    std::int32_t sent = 0;
    const auto send = [&](const std::vector<Axis>& axes, Bucket& bucket) {
      if (bucket.count == 0) return;
      std::ranges::sort(bucket.after);
      bucket.after.erase(std::unique(bucket.after.begin(), bucket.after.end()), bucket.after.end());
      append_reduction(block, fmt::format("gradients.{}", sent++), bucket.count, axes,
                       sharded_.mesh, *options_.strategy, std::move(bucket.after));
      bucket = {};
    };
    for (const std::size_t i : selected_) {
      for (const TensorId id : graph_.operators[i].outputs) {
        if (!complete_.contains(id)) continue;
        const Attribute& lies = sharded_.attributes[id.index()];
        const auto axes = partial_axes(lies, sharded_.mesh);
        const auto task = emitter.ready(id);
        if (axes.empty() || !task) continue;
        const std::int64_t count = local_elements(graph_[id], lies, sharded_.mesh);
        const TensorId parameter = graph_[id].gradient_of;
        (*options_.reduced)[axes] +=
            options_.times * local_elements(graph_[parameter],
                                            sharded_.attributes[parameter.index()], sharded_.mesh);
        Bucket& bucket = buckets[axes];
        bucket.count += count;
        bucket.after.push_back(*task);
        if (element * static_cast<double>(bucket.count) >=
            options_.strategy->framework->gradient_bucket)
          send(axes, bucket);
      }
    }
    for (auto& [axes, bucket] : buckets) send(axes, bucket);
    issue_early(block, first);
    if (sent > 0) block.name += ".reduce";
  }

  const ShardedGraph& sharded_;
  const Graph& graph_;
  std::string name_;
  PassOptions options_;
  std::set<TensorId> complete_;
  std::vector<std::size_t> selected_;
  std::vector<std::int32_t> leading_;  // conversions that follow the last loop or condition
  std::set<std::int32_t> done_;
  std::int64_t count_ = 0;
  Pieces pieces_;
};

// Adds a buffer that lives from the first block of `begin` to the end of the last block of `end`.
void hold(Pieces& begin, Pieces& end, const std::string& buffer, MemoryKind kind, Bytes bytes) {
  Piece* first = first_block(begin);
  Piece* last = last_block(end);
  if (bytes == 0_B || first == nullptr || last == nullptr) return;
  last->block.tasks.push_back(
      Task{.name = "free " + buffer, .body = Free{buffer}, .after = last_uses(last->block)});
  put_before(first->block, {Task{.name = "keep " + buffer, .body = Allocate{buffer, kind, bytes}}});
}

const Operator* backward_of(const Graph* backward, const Operator& op) {
  if (backward == nullptr) return nullptr;
  for (const Operator& each : backward->operators)
    if (each.bodies.size() == op.bodies.size() && belongs_to(each.name, op.name)) return &each;
  return nullptr;
}

Piece* piece_named(Pieces& pieces, const std::string& key) {
  for (Piece& piece : pieces)
    if (piece.kind != Piece::Kind::kBlock && piece.key == key) return &piece;
  return nullptr;
}

void add_memory(const std::string& name, const ShardedGraph& forward_graph, Pieces& forward,
                const ShardedGraph* backward_graph, Pieces* backward);

std::set<TensorId> kept_by(const ShardedGraph& forward, const ShardedGraph* backward,
                           Recompute recompute) {
  if (backward == nullptr) return {};
  return kept_tensors(*forward.graph, *backward->graph, {recompute});
}

// Books the memory within the bodies of loops and conditions: the transient tensors of each pass
// and, with a backward pass, the activations that are kept between the two passes.
void add_memory_of_bodies(const std::string& name, const ShardedGraph& forward_graph,
                          Pieces& forward, const ShardedGraph* backward_graph, Pieces* backward) {
  for (const Operator& op : forward_graph.graph->operators) {
    if (op.bodies.empty()) continue;
    Piece* own = piece_named(forward, op.name);
    const Operator* back =
        backward_graph == nullptr ? nullptr : backward_of(backward_graph->graph, op);
    Piece* other = back == nullptr ? nullptr : piece_named(*backward, op.name);
    for (std::size_t b = 0; own != nullptr && b < op.bodies.size(); ++b) {
      const auto& inner = forward_graph.bodies[static_cast<std::size_t>(op.bodies[b])];
      const ShardedGraph* inner_back =
          other == nullptr ? nullptr
                           : &backward_graph->bodies[static_cast<std::size_t>(back->bodies[b])];
      add_memory(fmt::format("{}.{}.{}", name, op.name, b), inner, own->bodies[b], inner_back,
                 other == nullptr ? nullptr : &other->bodies[b]);
    }
  }
}

void add_memory(const std::string& name, const ShardedGraph& forward_graph, Pieces& forward,
                const ShardedGraph* backward_graph, Pieces* backward) {
  const std::set<TensorId> kept = kept_by(forward_graph, backward_graph, Recompute::kNone);
  hold(forward, forward, name + ".forward.work", MemoryKind::kBuffers,
       forward_work(forward_graph, kept));
  if (backward != nullptr) {
    hold(*backward, *backward, name + ".backward.work", MemoryKind::kBuffers,
         backward_work(forward_graph, *backward_graph, kept, {}));
    hold(forward, *backward, name + ".activations", MemoryKind::kActivations,
         bytes_held(kept, forward_graph));
  }
  add_memory_of_bodies(name, forward_graph, forward, backward_graph, backward);
}

struct CollectedParameters {
  GraphParameters parameters{};
  Partial elements{};                 // elements of trained parameters
  std::vector<std::int64_t> sizes{};  // sizes of trained parameters with data-parallel copies
};

// {"data"} if there are several data-parallel ranks and they hold copies of a tensor with this
// layout, else {}.
std::vector<Axis> replicas_of(const Attribute& lies, const std::vector<MeshAxis>& mesh) {
  const Axis data = axis_of(mesh, "data");
  const bool one = mesh[static_cast<std::size_t>(data)].size == 1;
  if (one || state_of(lies, data).kind != AxisState::Kind::kReplicated) return {};
  return {data};
}

// Collects the parameters of a graph and its bodies. `copies`: how often a rank holds each of them;
// `elsewhere`: parameters of the graph that are counted elsewhere.
void collect(const ShardedGraph& forward, const ShardedGraph* backward, std::int64_t copies,
             const std::set<TensorId>& elsewhere, CollectedParameters& into) {
  const Graph& graph = *forward.graph;
  const auto gradients =
      backward == nullptr ? std::map<TensorId, TensorId>{} : gradients_in(*backward->graph);
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const Tensor& tensor = graph.tensors[t];
    if (tensor.role != TensorRole::kParameter) continue;
    const Attribute& lies = forward.attributes[t];
    const std::int64_t count = copies * local_elements(tensor, lies, forward.mesh);
    for (const auto& axes : lies.dims) into.parameters.split_over.insert(axes.begin(), axes.end());
    const TensorId id{static_cast<std::int64_t>(t)};
    if (elsewhere.contains(id)) continue;
    const auto gradient = gradients.find(id);
    const Bytes bytes = size_of(tensor.dtype) * static_cast<double>(count);
    into.parameters.bytes += bytes;
    const bool is_trained = gradient != gradients.end();
    if (is_trained || (backward == nullptr && !is_whole_number(tensor.dtype) && !tensor.frozen)) {
      const auto over =
          is_trained ? partial_axes(backward->attributes[gradient->second.index()], forward.mesh)
                     : replicas_of(lies, forward.mesh);
      into.elements[over] += count;
      if (std::ranges::find(over, axis_of(forward.mesh, "data")) == over.end()) continue;
      into.parameters.copied += bytes;
      into.sizes.insert(into.sizes.end(), static_cast<std::size_t>(copies), count / copies);
    } else if (!is_whole_number(tensor.dtype) && !tensor.frozen) {
      into.parameters.untrained.push_back(tensor.name);
    }
    if (tensor.updated_by_rows && backward != nullptr)
      into.parameters.row_states +=
          size_of(DType::kFp32) *
          static_cast<double>(copies * local_shape(tensor.shape, lies, forward.mesh).front());
  }
  for (const Operator& op : graph.operators) {
    const Operator* back = backward == nullptr ? nullptr : backward_of(backward->graph, op);
    for (std::size_t b = 0; b < op.bodies.size(); ++b) {
      const bool own = op.type == "loop" && op.settings.flag("own_parameters");
      collect(
          forward.bodies[static_cast<std::size_t>(op.bodies[b])],
          back == nullptr ? nullptr : &backward->bodies[static_cast<std::size_t>(back->bodies[b])],
          own ? copies * op.settings.integer("count") : copies, {}, into);
    }
  }
}

CollectedParameters collected(const GraphPasses& unit, const std::set<TensorId>& elsewhere) {
  CollectedParameters all;
  collect(unit.forward, unit.backward, 1, elsewhere, all);
  return all;
}

}  // namespace

GraphParameters parameters_of(const GraphPasses& unit, const std::set<TensorId>& elsewhere) {
  return collected(unit, elsewhere).parameters;
}

std::optional<std::vector<Axis>> gradient_axes(const GraphPasses& unit, TensorId parameter) {
  if (unit.backward == nullptr) return std::nullopt;
  const auto gradients = gradients_in(*unit.backward->graph);
  const auto found = gradients.find(parameter);
  if (found == gradients.end()) return std::nullopt;
  return partial_axes(unit.backward->attributes[found->second.index()], unit.forward.mesh);
}

LoweredBlock lower_graph_block(const GraphPasses& unit, const Strategy& strategy) {
  const ShardedGraph& graph = unit.forward;
  const std::string& name = graph.graph->name;
  const bool again = unit.recompute != Recompute::kNone;
  const std::set<TensorId> kept = kept_by(graph, unit.backward, unit.recompute);
  const auto forward_pass = [&](const std::string& suffix) {
    return Cutter(graph, name + suffix, {.strategy = &strategy, .planner = &unit.planner}).run();
  };
  Partial reduced;
  LoweredBlock lowered;
  lowered.recompute = unit.recompute;
  lowered.forward = forward_pass(".forward");
  const bool has_blocks = first_block(lowered.forward) != nullptr;
  if (has_blocks) lowered.transient_forward = forward_work(graph, kept);
  Pieces booked;  // `forward`, with what its bodies keep for a backward pass
  const auto backward_pass = [&](Partial* into) {
    const PassOptions options{.direction = Direction::kBackward,
                              .overlap = strategy.framework->overlap_tensor_gradients,
                              .reduced = into,
                              .seeds = &unit.seeds,
                              .strategy = &strategy,
                              .planner = &unit.planner};
    Pieces ahead = again ? forward_pass(".again") : lowered.forward;
    Pieces pass = Cutter(*unit.backward, name + ".backward", options).run();
    add_memory_of_bodies(name, graph, ahead, unit.backward, &pass);
    if (!again) {
      booked = std::move(ahead);
      return pass;
    }
    std::ranges::move(pass, std::back_inserter(ahead));
    return ahead;
  };
  if (unit.backward != nullptr) {
    lowered.backward = backward_pass(nullptr);
    lowered.reducing = backward_pass(unit.fills_buckets ? &reduced : nullptr);
    if (first_block(lowered.backward) != nullptr) {
      if (has_blocks) lowered.saved = bytes_held(kept, graph);
      lowered.transient_backward =
          backward_work(graph, *unit.backward, kept, {.recomputation = {unit.recompute}});
    }
  }
  if (splits_backward(strategy) && unit.backward != nullptr && graph.bodies.empty() &&
      can_split(*unit.backward->graph)) {
    std::vector<bool> weights = weight_gradient_operators(*unit.backward->graph);
    std::set<std::int32_t> converted;
    PassOptions options{.direction = Direction::kBackward,
                        .overlap = strategy.framework->overlap_tensor_gradients,
                        .seeds = &unit.seeds,
                        .left_out = &weights,
                        .converted = &converted,
                        .strategy = &strategy,
                        .planner = &unit.planner};
    const SplitWork work =
        split_work(graph, *unit.backward, kept, weights, {.recomputation = {unit.recompute}});
    SplitBackward split{.kept_for_weight = work.kept_for_weight,
                        .held = work.held,
                        .transient_input = work.input,
                        .transient_weight = work.weight};
    if (again) split.input = forward_pass(".again");
    std::ranges::move(Cutter(*unit.backward, name + ".backward_input", options).run(),
                      std::back_inserter(split.input));
    weights.flip();
    options.seeds = nullptr;
    split.weight = Cutter(*unit.backward, name + ".backward_weight", options).run();
    if (first_block(split.input) != nullptr && first_block(split.weight) != nullptr)
      lowered.split = std::move(split);
  }
  if (unit.backward != nullptr && !again)
    lowered.forward = std::move(booked);
  else
    add_memory_of_bodies(name, graph, lowered.forward, nullptr, nullptr);
  CollectedParameters all = collected(unit, {});
  lowered.parameter_sizes = std::move(all.sizes);
  for (const auto& [axes, count] : all.elements)
    lowered.parameters.push_back(
        {.over = axes, .elements = count, .reduced_inside = axes.empty() ? 0 : reduced[axes]});
  if (strategy.framework->matrix_units_need_alignment)
    for (Pieces* pass : all_passes(lowered)) visit_blocks(*pass, avoid_unaligned_matrix_units);
  return lowered;
}

}  // namespace foreshard::lower
