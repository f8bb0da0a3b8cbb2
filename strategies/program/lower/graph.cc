#include "strategies/program/lower/graph.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "base/check.h"

#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/operators/build.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/lower/block.h"
#include "strategies/program/lower/era.h"
#include "strategies/program/lower/graph_blocks.h"
#include "strategies/program/lower/lower.h"
#include "strategies/program/lower/optimizer_block.h"

namespace foreshard::lower {
namespace {

using program::Block;
using program::BlockId;
using program::Call;
using program::CallDependency;
using program::MemoryKind;
using program::Program;
using program::Task;

Status uneven_conversion(const ShardedGraph& sharded) {
  const auto uneven = [](const Attribute& attribute) {
    return std::ranges::any_of(attribute.sizes, [](const auto& sizes) { return !sizes.empty(); });
  };
  for (const Conversion& wish : sharded.conversions) {
    if (!uneven(wish.from) && !uneven(wish.to)) continue;
    return Error{Error::Code::kUnsupported,
                 fmt::format("tensor '{}' lies in slices of unequal size, {}, and would have to be "
                             "converted to {}; annotate its readers alike, or split it evenly",
                             (*sharded.graph)[wish.tensor].name, describe(wish.from, sharded.mesh),
                             describe(wish.to, sharded.mesh))};
  }
  for (const ShardedGraph& body : sharded.bodies) {
    FORESHARD_TRY(uneven_conversion(body));
  }
  return {};
}

Result<ShardedGraph> distributed(const Graph& graph, const std::vector<MeshAxis>& mesh) {
  auto sharded = distribute(graph, mesh);
  if (!sharded) return sharded;
  FORESHARD_TRY(uneven_conversion(*sharded));
  return sharded;
}

// Writes the calls of a step, the same on every rank.
class Step {
 public:
  Step(Program& program, const Strategy& strategy, const GraphOptions& options,
       const GraphParameters& parameters)
      : program_(program),
        strategy_(strategy),
        framework_(*strategy.framework),
        states_(state_sharding(strategy, program.ranks())),
        parameters_(parameters),
        random_(options.seed) {}

  void run(const Pieces& forward, const Pieces& backward, const Pieces& reducing) {
    const std::int64_t count = strategy_.micro_batches();
    const bool every = states_.reduce == StateSharding::Reduce::kEveryMicroBatch;
    for (std::int64_t m = 0; m < count; ++m) {
      micro_batch_ = static_cast<std::int32_t>(m);
      branches_.clear();
      write(forward, Direction::kForward, 0);
      if (!trains()) continue;
      const bool reduces = overlapped() && (m == count - 1 || every);
      write(reduces ? reducing : backward, Direction::kBackward, 0);
      if (every && !overlapped()) reduce_rest();
    }
    micro_batch_ = 0;
    if (trains()) {
      if (!every || overlapped()) reduce_rest();
      optimizer();
    }
    memory();
    role_.name = "all ranks";
    role_.ranks.resize(static_cast<std::size_t>(program_.ranks()));
    std::iota(role_.ranks.begin(), role_.ranks.end(), 0);
    program_.roles.push_back(std::move(role_));
  }

  // Elements that the blocks of `reducing` reduce on the way, by axes.
  void reduced_on_the_way(std::map<std::vector<Axis>, std::int64_t> elements) {
    on_the_way_ = std::move(elements);
  }

 private:
  bool trains() const { return strategy_.mode == Mode::kTrain; }
  bool overlapped() const { return states_.reduces_beside_backward; }

  BlockId block(const Block& wanted) {
    const auto [known, added] =
        ids_.try_emplace(wanted.name, BlockId{static_cast<std::int64_t>(program_.blocks.size())});
    if (added) program_.blocks.push_back(wanted);
    return known->second;
  }

  // The last task of each stream of the call before that what follows may need.
  std::vector<CallDependency> after_last() const {
    std::vector<CallDependency> after;
    if (role_.calls.empty()) return after;
    const auto call = static_cast<std::int32_t>(role_.calls.size()) - 1;
    const Block& before = program_.blocks[role_.calls.back().block.index()];
    for (const StreamIndex where : {kComputeStream, kTensorStream}) {
      for (std::size_t t = before.tasks.size(); t-- > 0;) {
        const Task& task = before.tasks[t];
        const bool runs = std::holds_alternative<Kernel>(task.body) ||
                          std::holds_alternative<program::Communication>(task.body);
        if (!runs || task.stream != stream(where)) continue;
        after.push_back({.call = call, .task = static_cast<std::int32_t>(t)});
        break;
      }
    }
    return after;
  }

  std::int32_t call(const Block& wanted, Call how, std::vector<CallDependency> after) {
    how.block = block(wanted);
    how.micro_batch = micro_batch_;
    std::ranges::sort(after);
    how.after = std::move(after);
    role_.calls.push_back(std::move(how));
    return static_cast<std::int32_t>(role_.calls.size()) - 1;
  }

  // `path`: the loops and conditions around the pieces, by their names in the forward pass;
  // `layer`: the iteration of the loops among them.
  void write(const Pieces& pieces, Direction direction, std::int64_t layer,
             const std::string& path = {}) {
    for (const Piece& piece : pieces) {
      if (piece.kind == Piece::Kind::kBlock) {
        call(piece.block, {.first_layer = static_cast<std::int32_t>(layer)}, after_last());
        continue;
      }
      const bool is_forward = direction == Direction::kForward;
      const std::string inner = path + '/' + (is_forward ? piece.key : piece.key.substr(2));
      if (piece.kind == Piece::Kind::kLoop)
        loop(piece, direction, layer, inner);
      else
        write(piece.bodies[branch(piece, direction, layer, inner)], direction, layer, inner);
    }
  }

  void loop(const Piece& piece, Direction direction, std::int64_t layer, const std::string& path) {
    const Pieces& body = piece.bodies[0];
    const bool is_forward = direction == Direction::kForward;
    const std::int64_t first = layer * piece.count + (is_forward ? 0 : piece.count - 1);
    const std::int32_t step = is_forward ? 1 : -1;
    if (body.size() == 1 && body[0].kind == Piece::Kind::kBlock && piece.count > 0) {
      call(body[0].block,
           {.repeat = static_cast<std::int32_t>(piece.count),
            .first_layer = static_cast<std::int32_t>(first),
            .layer_step = step},
           after_last());
      return;
    }
    for (std::int64_t i = 0; i < piece.count; ++i) write(body, direction, first + i * step, path);
  }

  // The backward pass takes the branch that the forward pass took.
  std::size_t branch(const Piece& piece, Direction direction, std::int64_t layer,
                     const std::string& path) {
    if (direction == Direction::kBackward) {
      const auto known = branches_.find({path, layer});
      FORESHARD_CHECK(known != branches_.end());
      return known->second;
    }
    const double draw = static_cast<double>(random_() >> 11U) * 0x1.0p-53;
    const std::size_t taken = draw < piece.probability ? 0 : 1;
    branches_[{path, layer}] = taken;
    return taken;
  }

  // --- end of the step ---------------------------------------------------------------------
  // What no block of the backward pass has reduced.
  void reduce_rest() {
    for (const auto& [axes, count] : parameters_.elements) {
      if (axes.empty()) continue;
      std::int64_t rest = count;
      if (overlapped()) {
        const auto done = on_the_way_.find(axes);
        if (done != on_the_way_.end()) rest -= done->second;
      }
      if (rest <= 0) continue;
      std::string over;
      for (const Axis axis : axes) over += "." + program_.mesh[static_cast<std::size_t>(axis)].name;
      Block sum{.name = "gradients.reduce" + over};
      append_reduction(sum, "gradients", rest, axes, program_.mesh, strategy_, {});
      if (!sum.tasks.empty()) call(sum, {}, after_last());
    }
  }

  // Elements of the optimizer's state on one rank.
  std::int64_t stepped(const std::vector<Axis>& axes, std::int64_t count) const {
    const bool over_data = std::ranges::any_of(axes, [&](Axis axis) {
      return program_.mesh[static_cast<std::size_t>(axis)].name == "data";
    });
    return states_.cuts_optimizer && over_data ? states_.shard_of(count) : count;
  }

  void optimizer() {
    std::int64_t count = 0;
    std::int64_t shared = 0;
    for (const auto& [axes, elements] : parameters_.elements) {
      const std::int64_t own = stepped(axes, elements);
      count += own;
      if (own != elements) shared += elements;
    }
    if (count == 0) return;
    std::set<Axis> spread = parameters_.split_over;
    for (std::size_t a = 0; a < program_.mesh.size(); ++a)
      if (program_.mesh[a].name == "data" && states_.cuts_optimizer)
        spread.insert(static_cast<Axis>(a));
    const Block step = optimizer_block("optimizer", strategy_, program_.mesh,
                                       {spread.begin(), spread.end()}, count);
    std::vector<CallDependency> all;
    for (std::size_t i = 0; i < role_.calls.size(); ++i) {
      const std::string& name = program_.blocks[role_.calls[i].block.index()].name;
      if (i + 1 == role_.calls.size() || name.find(".reduce") != std::string::npos)
        all.push_back({.call = static_cast<std::int32_t>(i)});
    }
    const std::int32_t done = call(step, {}, std::move(all));
    if (shared == 0) return;
    Block gather{.name = "parameters.gather"};
    Attribute from = replicated(1);
    from.dims[0] = {axis_of(program_.mesh, "data")};
    append_reshard(gather, "parameters", {shared}, strategy_.precision, from, replicated(1),
                   program_.mesh, stream(kDataStream), {});
    call(gather, {}, {{.call = done}});
  }

  void memory() {
    const auto bytes = [](Bytes element, std::int64_t count) {
      return element * static_cast<double>(count);
    };
    role_.memory = {{MemoryKind::kParameters, parameters_.bytes}};
    if (!trains()) return;
    std::int64_t gradients = 0;
    std::int64_t state = 0;
    for (const auto& [axes, count] : parameters_.elements) {
      gradients += states_.cuts_gradients ? stepped(axes, count) : count;
      state += stepped(axes, count);
    }
    role_.memory.push_back(
        {MemoryKind::kGradients,
         bytes(size_of(framework_.gradients_of(strategy_.precision)), gradients)});
    role_.memory.push_back(
        {MemoryKind::kOptimizer, bytes(optimizer_bytes(strategy_.precision), state)});
  }

  Program& program_;
  const Strategy& strategy_;
  const Framework& framework_;
  StateSharding states_;
  const GraphParameters& parameters_;
  std::mt19937_64 random_;
  program::Role role_;
  std::map<std::string, BlockId> ids_;
  // Of this micro-batch: by path and iteration.
  std::map<std::pair<std::string, std::int64_t>, std::size_t> branches_;
  std::map<std::vector<Axis>, std::int64_t> on_the_way_;
  std::int32_t micro_batch_ = 0;
};

// Elements that the blocks of a pass reduce, by axes: a loop's as often as it runs.
void count_reduced(const Pieces& pieces, std::int64_t times,
                   std::map<std::vector<Axis>, std::int64_t>& elements) {
  for (const Piece& piece : pieces) {
    for (const Pieces& body : piece.bodies) count_reduced(body, times * piece.count, elements);
    for (const auto& [axes, count] : piece.reduced) elements[axes] += times * count;
  }
}

// Without what only the gradients of the graph's inputs need: nobody asks for these.
void prune(Graph& graph) {
  std::vector<bool> read(graph.tensors.size());
  std::vector<Operator> kept;
  for (auto op = graph.operators.rbegin(); op != graph.operators.rend(); ++op) {
    const bool wanted = !op->bodies.empty() || std::ranges::any_of(op->outputs, [&](TensorId id) {
      return read[id.index()] || graph[id].role == TensorRole::kParameterGradient;
    });
    if (!wanted) continue;
    for (const TensorId id : op->inputs) read[id.index()] = true;
    kept.push_back(std::move(*op));
  }
  std::ranges::reverse(kept);
  graph.operators = std::move(kept);
  graph.outputs.clear();
}

std::vector<std::string> untrained_remarks(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  const std::string others =
      names.size() == 1 ? "" : fmt::format(" (and to {} others)", names.size() - 1);
  return {
      fmt::format("nothing flows back to parameter '{}'{}: it stays as it is, without a gradient "
                  "or optimizer state",
                  names.front(), others)};
}

std::vector<std::string> seed_remarks(const Graph& graph, const Graph& backward) {
  std::vector<std::string> remarks;
  for (const TensorId id : backward.inputs) {
    if (elements(backward[id]) <= 1) continue;
    remarks.push_back(
        fmt::format("output '{}' of '{}' has no loss behind it: the backward pass begins "
                    "with a gradient of its size, written once",
                    backward[id].name.substr(2), graph.name));
  }
  return remarks;
}

}  // namespace

Flops product_flops(const Graph& graph) {
  Flops sum;
  for (const Operator& op : graph.operators) {
    std::vector<std::vector<std::int64_t>> shapes;
    for (const TensorId id : op.inputs) shapes.push_back(graph[id].shape);
    for (const TensorId id : op.outputs) shapes.push_back(graph[id].shape);
    if (op.bodies.empty()) {
      for (const Kernel& kernel : kernels_of(graph, op, shapes))
        if (!std::holds_alternative<Pass>(kernel)) sum += flops_of(kernel);
    }
    for (std::size_t i = 0; i < op.bodies.size(); ++i)
      sum +=
          body_weight(op, i) * product_flops(graph.bodies[static_cast<std::size_t>(op.bodies[i])]);
  }
  return sum;
}

// A tensor without elements: no kernel works on it.
static Status hollow(const Graph& graph) {
  for (const Tensor& tensor : graph.tensors) {
    if (std::ranges::find(tensor.shape, 0) == tensor.shape.end()) continue;
    return Error{Error::Code::kInvalidInput,
                 fmt::format("tensor '{}' of shape [{}] has no elements; give every dimension at "
                             "least one",
                             tensor.name, fmt::join(tensor.shape, ", "))};
  }
  for (const Graph& body : graph.bodies) {
    FORESHARD_TRY(hollow(body));
  }
  return {};
}

Result<LoweredGraph> lower_graph(const Graph& graph, const Strategy& strategy,
                                 const GraphOptions& options) {
  FORESHARD_TRY(hollow(graph));
  const bool trains = strategy.mode == Mode::kTrain;
  const Framework& framework = *strategy.framework;
  LoweredGraph result;
  Program& program = result.program;
  program.mesh = mesh_of(strategy, options.axes);
  program.name = fmt::format("{}, tensor {} x data {}{}", graph.name, strategy.tensor_parallel,
                             strategy.data_parallel, trains ? "" : ", forward");
  program.streams = streams();
  program.launch_time = options.launch_time + strategy.framework->host_time;

  FORESHARD_ASSIGN(const auto forward, distributed(graph, program.mesh));
  result.remarks = forward.remarks;
  Graph back;
  std::optional<ShardedGraph> backward;
  if (trains) {
    back = backward_graph(forward, backward_options(strategy));
    prune(back);
    FORESHARD_ASSIGN(auto sharded, distributed(back, program.mesh));
    backward = std::move(sharded);
    for (const std::string& remark : seed_remarks(graph, back)) result.remarks.push_back(remark);
  }
  const ShardedGraph* behind = backward ? &*backward : nullptr;

  Pieces ahead = pieces_of(forward, graph.name + ".forward", {.strategy = &strategy});
  const PassOptions back_options{.direction = Direction::kBackward,
                                 .overlap = framework.overlap_tensor_gradients,
                                 .strategy = &strategy};
  Pieces plain;
  Pieces reducing;
  if (behind != nullptr) {
    PassOptions reduces = back_options;
    reduces.reduces = true;
    plain = pieces_of(*behind, graph.name + ".backward", back_options);
    reducing = pieces_of(*behind, graph.name + ".backward", reduces);
    Pieces again =
        ahead;  // both variants of the backward pass give back what one forward pass keeps
    add_memory(forward, again, behind, &reducing);
  }
  add_memory(forward, ahead, behind, behind == nullptr ? nullptr : &plain);

  const GraphParameters parameters = parameters_of(forward, behind);
  if (trains)
    for (const std::string& remark : untrained_remarks(parameters.untrained))
      result.remarks.push_back(remark);
  Step step(program, strategy, options, parameters);
  std::map<std::vector<Axis>, std::int64_t> on_the_way;
  count_reduced(reducing, 1, on_the_way);
  step.reduced_on_the_way(std::move(on_the_way));
  step.run(ahead, plain, reducing);
  if (framework.matrix_units_need_alignment)
    for (program::Block& block : program.blocks) leave_matrix_units(block);
  if (framework.blocking_launches) block_launches(program);

  const auto samples = static_cast<double>(strategy.global_batch);
  const double passes = static_cast<double>(strategy.micro_batches()) * (trains ? 3 : 1);
  program.totals = {.samples = samples,
                    .tokens = samples * options.tokens_per_sample,
                    .model_flops = passes * product_flops(graph),
                    .peak_dtype = std::string(name_of(strategy.precision))};
  return result;
}

}  // namespace foreshard::lower
