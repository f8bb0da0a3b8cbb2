#include "strategies/program/lower/graph.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/operators/build.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/program/lower/calls.h"
#include "strategies/program/lower/graph_blocks.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::lower {
namespace {

using program::MemoryKind;
using program::Program;

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
  FORESHARD_ASSIGN(auto sharded, distribute(graph, mesh));
  FORESHARD_TRY(uneven_conversion(sharded));
  return sharded;
}

// What a rank holds during the whole step.
std::vector<program::StaticMemory> memory_of(const plan::StepPlan& plan, const Strategy& strategy,
                                             const GraphParameters& parameters) {
  std::vector<program::StaticMemory> memory{{MemoryKind::kParameters, parameters.bytes}};
  if (strategy.mode == Mode::kForward) return memory;
  const plan::Role& role = plan.roles.front();
  const auto held = [&](MemoryKind kind, Bytes element, bool cut) {
    const std::int64_t copied = role.copied_elements;
    const std::int64_t count =
        role.elements - copied + (cut ? plan.states.shard_of(copied) : copied);
    memory.push_back({kind, element * static_cast<double>(count)});
  };
  held(MemoryKind::kGradients, size_of(strategy.framework->gradients_of(strategy.precision)),
       plan.states.cuts_gradients);
  held(MemoryKind::kOptimizer, optimizer_bytes(strategy.precision), plan.states.cuts_optimizer);
  return memory;
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
  const std::vector<MeshAxis> mesh = mesh_of(strategy, options.axes);
  FORESHARD_ASSIGN(const auto forward, distributed(graph, mesh));
  LoweredGraph result{.remarks = forward.remarks};
  Graph back;
  std::optional<ShardedGraph> backward;
  if (trains) {
    back = backward_graph(forward, backward_options(strategy));
    prune(back);
    FORESHARD_ASSIGN(backward, distributed(back, mesh));
    for (const std::string& remark : seed_remarks(graph, back)) result.remarks.push_back(remark);
  }
  const ShardedGraph* behind = backward ? &*backward : nullptr;
  const GraphParameters parameters = parameters_of(forward, behind);
  const LoweredBlock block = lower_graph_block(forward, behind, strategy);
  if (trains)
    for (const std::string& remark : untrained_remarks(parameters.untrained))
      result.remarks.push_back(remark);

  FORESHARD_ASSIGN(
      result.plan,
      plan::make_plan(
          {.name = fmt::format("{}, tensor {} x data {}{}", graph.name, strategy.tensor_parallel,
                               strategy.data_parallel, trains ? "" : ", forward"),
           .mesh = mesh,
           .blocks = {{.name = graph.name, .groups = block.parameters}},
           .units = {{.name = graph.name}},
           .pieces = {{.first = 0, .count = 1}}},
          strategy));
  Program& program = result.program;
  program = program_of(result.plan, strategy,
                       {.blocks = {&block},
                        .split_over = parameters.split_over,
                        .seed = options.seed,
                        .waits_for_conversions = true},
                       options.launch_time);
  program.roles.front().name = "all ranks";
  program.roles.front().memory = memory_of(result.plan, strategy, parameters);

  const auto samples = static_cast<double>(strategy.global_batch);
  const double passes = static_cast<double>(strategy.micro_batches()) * (trains ? 3 : 1);
  program.totals = {.samples = samples,
                    .tokens = samples * options.tokens_per_sample,
                    .model_flops = passes * product_flops(graph),
                    .peak_dtype = std::string(name_of(strategy.precision))};
  return result;
}

}  // namespace foreshard::lower
