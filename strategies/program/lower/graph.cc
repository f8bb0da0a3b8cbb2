#include "strategies/program/lower/graph.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>

#include "strategies/graph/counts.h"
#include "strategies/graph/rebatch.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/parallelism/pipeline.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/lower/calls.h"
#include "strategies/program/lower/graph_units.h"
#include "strategies/program/lower/lower.h"
#include "strategies/reshard/within_mesh.h"

namespace foreshard::lower {
namespace {

using program::Program;

std::vector<std::string> untrained_remarks(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  const std::string others =
      names.size() == 1 ? "" : fmt::format(" (and to {} others)", names.size() - 1);
  return {
      fmt::format("nothing flows back to parameter '{}'{}: it stays as it is, without a gradient "
                  "or optimizer state",
                  names.front(), others)};
}

std::vector<std::string> seed_remarks(const Graph& graph, const UnitGradients& unit) {
  std::vector<std::string> remarks;
  for (const TensorId id : unit.seeds) {
    if (elements(unit.backward[id]) <= 1) continue;
    remarks.push_back(
        fmt::format("output '{}' of '{}' has no loss behind it: the backward pass begins "
                    "with a gradient of its size, written once",
                    unit.backward[id].name.substr(2), graph.name));
  }
  return remarks;
}

// The remarks without repetitions: where several differ only in the iteration of a loop
// ("layers[3]."), the first one.
std::vector<std::string> once_per_loop(const std::vector<std::string>& remarks) {
  static const std::regex iteration(R"(\[\d+\]\.)");
  std::set<std::string> known;
  std::vector<std::string> first;
  for (const std::string& remark : remarks)
    if (known.insert(std::regex_replace(remark, iteration, "[].")).second) first.push_back(remark);
  return first;
}

std::vector<std::string> remarks_on(const ShardedUnits& units,
                                    const std::vector<GraphParameters>& parameters,
                                    const Strategy& strategy) {
  std::vector<std::string> remarks = once_per_loop(units.whole.remarks);
  const auto add = [&](std::vector<std::string> lines) {
    std::ranges::move(lines, std::back_inserter(remarks));
  };
  for (const UnitGradients& unit : units.gradients) add(seed_remarks(units.graph(), unit));
  std::vector<std::string> untrained;
  for (const GraphParameters& unit : parameters)
    untrained.insert(untrained.end(), unit.untrained.begin(), unit.untrained.end());
  if (units.trains()) add(untrained_remarks(untrained));
  if (units.units.size() > 1) return remarks;
  const std::string name = units.graph().name;
  if (state_sharding(strategy).cuts_parameters)
    add(
        {fmt::format("'{}' is one unit: ZeRO 3 gathers all of its parameters at a time; name "
                     "operators in graph.cuts",
                     name)});
  if (units.recompute != Recompute::kNone)
    add(
        {fmt::format("'{}' is one unit: all of its activations are computed again at a time; name "
                     "operators in graph.cuts",
                     name)});
  return remarks;
}

// The units of the graph for one micro-batch, and for each number of micro-batches that a stage
// takes in a pass.
class UnitsByMicroBatches {
 public:
  // \return the errors of lower_graph.
  Status add(const Graph& graph, const std::vector<MeshAxis>& mesh, const Strategy& strategy,
             const GraphOptions& options, std::int64_t together) {
    if (by_together_.contains(together)) return {};
    FORESHARD_ASSIGN(const Graph own, rebatched(graph, options.batch, together * options.batch));
    FORESHARD_ASSIGN(auto parted, with_cuts(own, options.cuts));
    CutUnits& cut = by_together_[together];
    cut.graph = std::move(parted);
    FORESHARD_ASSIGN(cut.units, sharded_units(cut.graph, mesh, strategy));
    cut.activations = activations_of(cut.units, pieces_of(strategy, cut.units.units.size()));
    return {};
  }
  const ShardedUnits& of(std::int64_t together) const { return by_together_.at(together).units; }
  Bytes activations(std::int64_t together, std::size_t unit) const {
    return by_together_.at(together).activations[unit];
  }

 private:
  struct CutUnits {
    CutGraph graph{};
    ShardedUnits units{};
    std::vector<Bytes> activations{};  // by unit
  };
  std::map<std::int64_t, CutUnits> by_together_;  // a map: references to graphs stay valid
};

// unit -> how many micro-batches its stage takes in a pass.
std::vector<std::int64_t> taken_by_units(const Strategy& strategy,
                                         const std::vector<plan::UnitRange>& pieces) {
  std::vector<std::int64_t> taken;
  for (std::size_t piece = 0; piece < pieces.size(); ++piece)
    taken.insert(taken.end(), static_cast<std::size_t>(pieces[piece].count),
                 strategy.granularity_of(piece));
  return taken;
}

// What each piece hands to the next. A message has as many micro-batches as the stage of the two
// that takes fewer in a pass.
Result<std::vector<std::vector<NamedBoundary>>> boundaries_of(
    const UnitsByMicroBatches& units, const Strategy& strategy,
    const std::vector<plan::UnitRange>& pieces) {
  FORESHARD_ASSIGN(auto boundaries, boundaries_of(units.of(1), pieces));
  for (std::size_t stage = 0; stage + 1 < strategy.granularity.size(); ++stage) {
    const auto together = std::min(strategy.granularity[stage], strategy.granularity[stage + 1]);
    FORESHARD_ASSIGN(auto handed, boundaries_of(units.of(together), pieces));
    boundaries[stage] = std::move(handed[stage]);
  }
  return boundaries;
}

// The model as the planners take it. Units that do the same and keep the same share a block.
plan::PlannedModel parts_of(const ShardedUnits& units, const std::vector<std::int64_t>& taken,
                            const std::vector<LoweredBlock>& blocks, PlannedBlocks& planned) {
  plan::PlannedModel parts{.mesh = units.whole.mesh};
  std::vector<std::size_t> first;  // block -> its first unit
  for (std::size_t u = 0; u < units.units.size(); ++u) {
    const std::string& name = units.units[u].graph.name;
    const auto known = std::ranges::find_if(first, [&](std::size_t other) {
      return taken[other] == taken[u] && blocks[other].saved == blocks[u].saved &&
             equivalent(units, other, u);
    });
    const auto block = static_cast<std::int32_t>(known - first.begin());
    if (known == first.end()) {
      first.push_back(u);
      parts.blocks.push_back({.name = name,
                              .groups = blocks[u].parameters,
                              .splits = blocks[u].split.has_value(),
                              .host_waits = host_waits_in(blocks[u].forward)});
      planned.blocks.push_back(&blocks[u]);
    }
    const auto layer = std::ranges::count(parts.units, block, &plan::Unit::block);
    parts.units.push_back(
        {.name = name, .block = block, .layer = static_cast<std::int32_t>(layer)});
  }
  return parts;
}

// Refuses a pass without operators for which ZeRO makes parameters or gradients whole: operators of
// the pass would have to allocate and free these.
Status without_operators(const LoweredBlock& block, const GraphParameters& parameters,
                         const std::string& name, const Strategy& strategy) {
  const StateSharding states = state_sharding(strategy);
  const bool forward = states.cuts_parameters && first_block(block.forward) == nullptr;
  const bool backward = strategy.mode == Mode::kTrain && states.cuts_gradients &&
                        first_block(block.backward) == nullptr;
  if (parameters.copied == 0_B || (!forward && !backward)) return {};
  return Error{
      Error::Code::kUnsupported,
      fmt::format("the {} pass of unit '{}' has no kernel outside of loops and conditions, "
                  "and so none for which ZeRO 2 or 3 makes its {} whole; cut the graph "
                  "elsewhere (at a loop with parameters of its own, to make each iteration a "
                  "unit), or take ZeRO 1",
                  forward ? "forward" : "backward", name, forward ? "parameters" : "gradients")};
}

std::string name_of(const Graph& graph, const Strategy& strategy) {
  const std::string pipeline =
      strategy.stages() == 1 ? "" : fmt::format(" x pipeline {}", strategy.pipeline_parallel);
  return fmt::format("{}, tensor {}{} x data {}{}", graph.name, strategy.tensor_parallel, pipeline,
                     strategy.data_parallel, strategy.mode == Mode::kTrain ? "" : ", forward");
}

HeldParts held_by(const plan::Role& role, const std::vector<MeshAxis>& mesh,
                  const StateSharding& states, const std::vector<GraphParameters>& parameters) {
  HeldParts held{.mesh = mesh, .groups = role.parameters, .whole = 0_B, .pads_shards = true};
  for (const plan::Chunk& chunk : role.chunks) {
    for (std::int32_t i = 0; i < chunk.units.count; ++i) {
      const std::int32_t index = chunk.units.first + i;
      const GraphParameters& unit = parameters[static_cast<std::size_t>(index)];
      *held.whole += states.cuts_parameters ? unit.bytes - unit.copied : unit.bytes;
      held.row_states += unit.row_states;
    }
  }
  return held;
}

reshard::MeshPlanner planner_of(const GraphOptions& options, const std::vector<MeshAxis>& axes) {
  if (options.cost == nullptr) return reshard::steps_within;
  const ProcessMesh mesh = mesh_from(axes);
  const Axis pipeline = axis_of(axes, "pipeline");
  std::vector<std::int32_t> ranks;
  for (const std::int32_t rank : mesh.ranks)
    if (coordinate_of(mesh, rank, pipeline) == 0) ranks.push_back(rank);
  return reshard::planner_by_time(*options.cost, options.placement, std::move(ranks));
}

}  // namespace

static bool freezes(const Graph& graph) {
  return std::ranges::any_of(graph.tensors, &Tensor::frozen) ||
         std::ranges::any_of(graph.bodies, freezes);
}

// Refuses tensors without elements: no kernel works on them.
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
  if (strategy.mode == Mode::kTrain && freezes(graph) && trained(graph).empty())
    return Error{Error::Code::kInvalidInput,
                 fmt::format("all parameters of '{}' are frozen, so there is nothing to train; set "
                             "strategy.mode: forward for its forward pass",
                             graph.name)};
  const std::vector<MeshAxis> mesh = mesh_of(strategy, options.axes);
  UnitsByMicroBatches by_pass;
  FORESHARD_TRY(by_pass.add(graph, mesh, strategy, options, 1));
  for (const std::int64_t together : strategy.granularity) {
    FORESHARD_TRY(by_pass.add(graph, mesh, strategy, options, together));
  }
  const ShardedUnits& units = by_pass.of(1);
  const std::vector<plan::UnitRange> pieces = pieces_of(strategy, units.units.size());
  const std::vector<std::int64_t> taken = taken_by_units(strategy, pieces);
  const std::vector<GraphParameters> parameters = parameters_of(units, pieces);
  FORESHARD_ASSIGN(const auto tie, tie_of(units));
  if (tie && strategy.pipeline_parallel > 1 && last_stage(strategy) == 0 &&
      state_sharding(strategy).cuts_gradients)
    return Error{
        Error::Code::kUnsupported,
        fmt::format("the first and the last unit share a parameter, schedule '{}' has both "
                    "on one stage, and ZeRO 2 or 3 would cut it by micro-batches; take "
                    "ZeRO 1",
                    strategy.schedule)};
  FORESHARD_ASSIGN(const auto boundaries, boundaries_of(by_pass, strategy, pieces));

  std::vector<LoweredBlock> blocks;
  const reshard::MeshPlanner planner = planner_of(options, mesh);
  for (std::size_t u = 0; u < units.units.size(); ++u) {
    UnitPasses passes = by_pass.of(taken[u]).passes(u);
    passes.planner = planner;
    blocks.push_back(lower_graph_block(passes, strategy));
    if (blocks.back().saved > 0_B) blocks.back().saved = by_pass.activations(taken[u], u);
    FORESHARD_TRY(
        without_operators(blocks.back(), parameters[u], units.units[u].graph.name, strategy));
  }
  PlannedBlocks planned{.seed = options.seed};
  plan::PlannedModel parts = parts_of(units, taken, blocks, planned);
  parts.name = name_of(graph, strategy);
  parts.pieces = pieces;
  parts.tie = tie;
  for (const auto& crossing : boundaries) {
    parts.boundaries.push_back(crossing.front().name);
    std::vector<Boundary>& handed = planned.boundaries.emplace_back();
    for (const NamedBoundary& one : crossing) handed.push_back(one.boundary);
  }
  for (const GraphParameters& unit : parameters)
    planned.split_over.insert(unit.split_over.begin(), unit.split_over.end());
  if (pieces.size() > 1) planned.split_over.insert(axis_of(mesh, "pipeline"));

  LoweredGraph result{.remarks = remarks_on(units, parameters, strategy)};
  FORESHARD_ASSIGN(result.plan, plan::make_plan(std::move(parts), strategy));
  Program& program = result.program;
  program = program_of(result.plan, strategy, planned, options.launch_time);
  if (program.roles.size() == 1) program.roles.front().name = "all ranks";
  for (std::size_t i = 0; i < program.roles.size(); ++i) {
    const StateSharding& states = result.plan.states;
    program.roles[i].memory =
        resident_memory(strategy, states, held_by(result.plan.roles[i], mesh, states, parameters));
  }

  const bool trains = strategy.mode == Mode::kTrain;
  const auto samples = static_cast<double>(strategy.global_batch);
  program.totals = {.samples = samples,
                    .tokens = samples * options.tokens_per_sample,
                    .model_flops = static_cast<double>(strategy.micro_batches()) *
                                   (trains ? step_flops(graph) : product_flops(graph)),
                    .peak_dtype = std::string(foreshard::name_of(strategy.precision))};
  return result;
}

}  // namespace foreshard::lower
