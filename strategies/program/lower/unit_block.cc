#include "strategies/program/lower/unit_block.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>

#include "strategies/graph/backward.h"
#include "strategies/parallelism/pipeline.h"
#include "strategies/program/lower/eager.h"
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

// A pass of a unit, or the part of it in a body.
struct PassOptions {
  const UnitPasses& unit;
  const Strategy& strategy;
  Direction direction = Direction::kForward;
  PartialElements* reduced = nullptr;  // if set: gradients are reduced in buckets, counted here
  std::int64_t times = 1;              // how often a pass of the unit runs this graph
  bool begins = true;  // a backward pass begins here: with seeds, and what it recomputes inside
  const std::vector<bool>* left_out = nullptr;  // operators of the other part of a backward pass
  std::set<std::int32_t>* converted = nullptr;  // conversions that the first part has made
};

// Cuts a pass at its loops and conditions.
class Cutter {
 public:
  Cutter(const ShardedGraph& sharded, std::string name, const PassOptions& options)
      : sharded_(sharded), graph_(*sharded.graph), name_(std::move(name)), options_(options) {
    if (options_.reduced != nullptr)
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
    const UnitPasses& unit = options_.unit;
    const bool is_backward = options_.direction == Direction::kBackward;
    Emitter emitter(block, is_backward ? unit.backward_overlap : unit.forward_overlap,
                    unit.launching, unit.planner);
    if (is_backward && options_.begins && count_ == 0) {
      recompute(emitter);
      seeds(block);
    }
    emitter.convert(sharded_, std::exchange(leading_, {}), done_);
    emitter.emit(sharded_, selected_, done_);
    if (options_.reduced != nullptr) reductions(block, emitter);
    emitter.convert(sharded_, trailing, done_);
    selected_.clear();
    if (block.tasks.empty()) return;
    ++count_;
    pieces_.push_back({.block = std::move(block)});
  }

  void recompute(Emitter& emitter) const {
    const UnitPasses& unit = options_.unit;
    if (!unit.recomputes_inside) return;
    std::set<std::int32_t> converted;
    emitter.emit(
        unit.forward,
        recomputed_operators(*unit.forward.graph, *unit.backward->graph, unit.recomputation),
        converted);
  }

  // Writes the gradients that the backward pass starts from.
  void seeds(Block& block) const {
    for (const TensorId id : options_.unit.seeds) {
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
      inner.begins = false;
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
    const Strategy& strategy = options_.strategy;
    const Bytes element = size_of(strategy.framework->gradients_of(strategy.precision));
    const std::size_t first = block.tasks.size();
    std::int32_t sent = 0;
    const auto send = [&](const std::vector<Axis>& axes, Bucket& bucket) {
      if (bucket.count == 0) return;
      std::ranges::sort(bucket.after);
      bucket.after.erase(std::unique(bucket.after.begin(), bucket.after.end()), bucket.after.end());
      append_reduction(block, fmt::format("gradients.{}", sent++), bucket.count, axes,
                       sharded_.mesh, strategy, std::move(bucket.after));
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
        if (element * static_cast<double>(bucket.count) >= strategy.framework->gradient_bucket)
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

Piece* piece_named(Pieces& pieces, const std::string& key) {
  for (Piece& piece : pieces)
    if (piece.kind != Piece::Kind::kBlock && piece.key == key) return &piece;
  return nullptr;
}

void add_memory(const std::string& name, const ShardedGraph& forward_graph, Pieces& forward,
                const ShardedGraph* backward_graph, Pieces* backward);

Kept kept_by(const ShardedGraph& forward, const ShardedGraph* backward,
             const Recomputation& recomputation) {
  if (backward == nullptr) return {};
  return {.tensors = kept_tensors(*forward.graph, *backward->graph, recomputation),
          .beside = kept_beside(forward, *backward->graph, recomputation)};
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
  const Kept kept = kept_by(forward_graph, backward_graph, {});
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

// Lowers one unit.
class UnitLowering {
 public:
  UnitLowering(const UnitPasses& unit, const Strategy& strategy)
      : unit_(unit),
        strategy_(strategy),
        name_(unit.forward.graph->name),
        runs_again_(unit.recomputation.how != Recompute::kNone && !unit.recomputes_inside),
        kept_(kept_by(unit.forward, unit.backward, unit.recomputation)),
        work_{.recomputation = unit.recomputation,
              .placeholders_kept = unit.placeholders_kept,
              .loss_words = strategy.framework->loss_words} {}

  LoweredBlock run(PartialElements& reduced) {
    lowered_.recompute = unit_.recomputation.how;
    lowered_.forward = forward_pass(".forward");
    if (has_forward()) lowered_.transient_forward = forward_work(unit_.forward, kept_, work_);
    if (unit_.backward != nullptr) {
      add_backward(reduced);
      add_split();
    }
    if (booked_.empty())
      add_memory_of_bodies(name_, unit_.forward, lowered_.forward, nullptr, nullptr);
    else
      lowered_.forward = std::move(booked_);
    if (strategy_.framework->matrix_units_need_alignment)
      for (Pieces* pass : all_passes(lowered_)) visit_blocks(*pass, avoid_unaligned_matrix_units);
    return std::move(lowered_);
  }

 private:
  bool has_forward() const { return first_block(lowered_.forward) != nullptr; }

  Pieces forward_pass(const std::string& suffix) const {
    return Cutter(unit_.forward, name_ + suffix, {.unit = unit_, .strategy = strategy_}).run();
  }

  void add_backward(PartialElements& reduced) {
    lowered_.backward = backward_pass(nullptr);
    if (unit_.fills_buckets) lowered_.reducing = backward_pass(&reduced);
    if (first_block(lowered_.backward) == nullptr) return;
    if (has_forward()) lowered_.saved = bytes_held(kept_, unit_.forward);
    lowered_.transient_backward = backward_work(unit_.forward, *unit_.backward, kept_, work_);
  }

  // The whole backward pass, after what is run again for it.
  Pieces backward_pass(PartialElements* reduced) {
    const PassOptions options{.unit = unit_,
                              .strategy = strategy_,
                              .direction = Direction::kBackward,
                              .reduced = reduced};
    Pieces pass = Cutter(*unit_.backward, name_ + ".backward", options).run();
    if (!runs_again_ && unit_.forward.graph->bodies.empty()) return pass;
    Pieces ahead = runs_again_ ? forward_pass(".again") : lowered_.forward;
    add_memory_of_bodies(name_, unit_.forward, ahead, unit_.backward, &pass);
    if (runs_again_) {
      std::ranges::move(pass, std::back_inserter(ahead));
      return ahead;
    }
    booked_ = std::move(ahead);
    return pass;
  }

  // Whether a loss on the logits of some words at a time is in the unit: it makes the gradients of
  // weights from these logits, before it goes on.
  bool loses_by_words() const {
    return strategy_.framework->loss_words > 0 &&
           std::ranges::any_of(unit_.forward.graph->operators, computes_loss);
  }

  // The backward pass in two parts, where the schedule splits it and the unit can be split.
  void add_split() {
    if (!splits_backward(strategy_) || !unit_.forward.graph->bodies.empty() || loses_by_words() ||
        !can_split(*unit_.backward->graph))
      return;
    std::vector<bool> weights = weight_gradient_operators(*unit_.backward->graph);
    std::set<std::int32_t> converted;
    PassOptions options{.unit = unit_,
                        .strategy = strategy_,
                        .direction = Direction::kBackward,
                        .left_out = &weights,
                        .converted = &converted};
    const SplitWork work = split_work(unit_.forward, *unit_.backward, kept_, weights, work_);
    SplitBackward split{.kept_for_weight = work.kept_for_weight,
                        .held = work.held,
                        .transient_input = work.input,
                        .transient_weight = work.weight};
    if (runs_again_) split.input = forward_pass(".again");
    std::ranges::move(Cutter(*unit_.backward, name_ + ".backward_input", options).run(),
                      std::back_inserter(split.input));
    weights.flip();
    options.begins = false;
    split.weight = Cutter(*unit_.backward, name_ + ".backward_weight", options).run();
    if (first_block(split.input) != nullptr && first_block(split.weight) != nullptr)
      lowered_.split = std::move(split);
  }

  const UnitPasses& unit_;
  const Strategy& strategy_;
  std::string name_;
  bool runs_again_;  // all of the forward pass, before the backward pass
  Kept kept_;
  BackwardWork work_;
  LoweredBlock lowered_;
  Pieces booked_;  // the forward pass, with what its bodies keep for the backward pass
};

}  // namespace

std::vector<Axis> partial_axes(const Attribute& attribute, const std::vector<MeshAxis>& mesh) {
  std::vector<Axis> axes = axes_of(attribute.partial);
  std::erase_if(axes, [&](Axis axis) { return mesh[static_cast<std::size_t>(axis)].size == 1; });
  return axes;
}

std::map<TensorId, TensorId> gradients_in(const Graph& backward) {
  std::map<TensorId, TensorId> result;
  for (std::size_t t = 0; t < backward.tensors.size(); ++t) {
    const Tensor& tensor = backward.tensors[t];
    if (tensor.role == TensorRole::kParameterGradient && tensor.gradient_of.valid())
      result[tensor.gradient_of] = TensorId{static_cast<std::int64_t>(t)};
  }
  return result;
}

// The name of an operator of the backward graph is "d.name" or "d.name.part".
const Operator* backward_of(const Graph* backward, const Operator& op) {
  if (backward == nullptr) return nullptr;
  const std::string begin = "d." + op.name;
  for (const Operator& each : backward->operators) {
    const bool belongs = each.name == begin || each.name.starts_with(begin + ".");
    if (belongs && each.bodies.size() == op.bodies.size()) return &each;
  }
  return nullptr;
}

LoweredBlock lower_unit(const UnitPasses& unit, const Strategy& strategy,
                        PartialElements& reduced) {
  return UnitLowering(unit, strategy).run(reduced);
}

}  // namespace foreshard::lower
