#include "strategies/program/lower/graph_units.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/program/lower/eager.h"
#include "strategies/program/lower/liveness.h"
#include "strategies/program/lower/recompute.h"

namespace foreshard::lower {
namespace {

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

Result<ShardedGraph> distributed(const Graph& graph, const std::vector<MeshAxis>& mesh,
                                 BackwardPass backward) {
  FORESHARD_ASSIGN(auto sharded, distribute(graph, mesh, Flow::kBothWays, backward));
  FORESHARD_TRY(uneven_conversion(sharded));
  return sharded;
}

// Refuses tensors that are split over stages: ranks along the pipeline hold different units.
Status split_over_stages(const Graph& graph, Axis pipeline) {
  for (const Tensor& tensor : graph.tensors) {
    if (!tensor.pinned || state_of(*tensor.pinned, pipeline).kind == AxisState::Kind::kReplicated)
      continue;
    return Error{Error::Code::kInvalidInput,
                 fmt::format("tensor '{}' is annotated over axis 'pipeline', but the ranks of a "
                             "pipeline run different units; take another axis",
                             tensor.name)};
  }
  for (const Graph& body : graph.bodies) {
    FORESHARD_TRY(split_over_stages(body, pipeline));
  }
  return {};
}

// Calls `visit` with every parameter of every unit.
template <class Visit>
void visit_parameters(const ShardedUnits& units, Visit visit) {
  for (std::size_t u = 0; u < units.units.size(); ++u) {
    const std::vector<Tensor>& tensors = units.units[u].graph.tensors;
    for (std::size_t t = 0; t < tensors.size(); ++t)
      if (tensors[t].role == TensorRole::kParameter)
        visit(u, TensorId{static_cast<std::int64_t>(t)});
  }
}

struct CollectedParameters {
  GraphParameters parameters{};
  PartialElements elements{};         // elements of trained parameters
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

CollectedParameters collected(const UnitPasses& unit, const std::set<TensorId>& elsewhere) {
  CollectedParameters all;
  collect(unit.forward, unit.backward, 1, elsewhere, all);
  return all;
}

std::size_t piece_with(const std::vector<plan::UnitRange>& pieces, std::size_t unit) {
  return static_cast<std::size_t>(std::ranges::find_if(pieces,
                                                       [&](const plan::UnitRange& piece) {
                                                         return piece.contains(
                                                             static_cast<std::int32_t>(unit));
                                                       }) -
                                  pieces.begin());
}

// Set of (piece, tensor of the whole graph).
using PieceTensors = std::set<std::pair<std::size_t, TensorId>>;

}  // namespace

GraphParameters parameters_of(const UnitPasses& unit, const std::set<TensorId>& elsewhere) {
  return collected(unit, elsewhere).parameters;
}

std::optional<std::vector<Axis>> gradient_axes(const UnitPasses& unit, TensorId parameter) {
  if (unit.backward == nullptr) return std::nullopt;
  const auto gradients = gradients_in(*unit.backward->graph);
  const auto found = gradients.find(parameter);
  if (found == gradients.end()) return std::nullopt;
  return partial_axes(unit.backward->attributes[found->second.index()], unit.forward.mesh);
}

LoweredBlock lower_graph_block(const UnitPasses& unit, const Strategy& strategy) {
  PartialElements reduced;
  LoweredBlock lowered = lower_unit(unit, strategy, reduced);
  CollectedParameters all = collected(unit, {});
  lowered.parameter_sizes = std::move(all.sizes);
  for (const auto& [axes, count] : all.elements)
    lowered.parameters.push_back(
        {.over = axes, .elements = count, .reduced_inside = axes.empty() ? 0 : reduced[axes]});
  return lowered;
}

UnitPasses ShardedUnits::passes(std::size_t unit) const {
  if (!trains()) return {.forward = forward[unit], .launching = launching};
  return {.forward = forward[unit],
          .backward = &backward[unit],
          .seeds = gradients[unit].seeds,
          .recomputation = {recompute},
          .fills_buckets = units.size() == 1,
          .backward_overlap = backward_overlap,
          .launching = launching};
}

Result<ShardedUnits> sharded_units(const CutGraph& graph, const std::vector<MeshAxis>& mesh,
                                   const Strategy& strategy) {
  if (strategy.pipeline_parallel > 1) {
    FORESHARD_TRY(split_over_stages(graph.graph, axis_of(mesh, "pipeline")));
  }
  ShardedUnits all;
  all.launching.captured = strategy.cuda_graphs;  // a framework's launch counts are for its models
  const BackwardPass follows = backward_pass(strategy);
  FORESHARD_ASSIGN(all.whole, distributed(graph.graph, mesh, follows));
  all.units = cut(all.whole, graph.begins);
  if (all.units.size() == 1) {
    all.forward = {all.whole};
  } else {
    for (const GraphUnit& unit : all.units) {
      FORESHARD_ASSIGN(auto forward, distributed(unit.graph, mesh, follows));
      all.forward.push_back(std::move(forward));
    }
  }
  if (follows == BackwardPass::kNone) return all;
  all.recompute = strategy.recompute;
  all.backward_overlap.conversions = strategy.framework->overlap_tensor_gradients;
  all.gradients = gradients_of(graph.graph, all.units, all.forward, backward_options(strategy));
  for (const UnitGradients& unit : all.gradients) {
    FORESHARD_ASSIGN(auto backward, distributed(unit.backward, mesh, BackwardPass::kNone));
    all.backward.push_back(std::move(backward));
  }
  return all;
}

std::vector<plan::UnitRange> pieces_of(const Strategy& strategy, std::size_t units) {
  std::vector<plan::UnitRange> pieces;
  std::int32_t next = 0;
  for (const std::int64_t count : layers_of_stages(strategy, static_cast<std::int64_t>(units))) {
    pieces.push_back({next, static_cast<std::int32_t>(count)});
    next += static_cast<std::int32_t>(count);
  }
  return pieces;
}

std::vector<Bytes> activations_of(const ShardedUnits& units,
                                  const std::vector<plan::UnitRange>& pieces) {
  const std::vector<TensorId> storage = storages_of(units.graph());
  PieceTensors held;
  std::vector<Bytes> activations(units.units.size());
  for (std::size_t u = 0; units.trains() && u < units.units.size(); ++u) {
    const GraphUnit& unit = units.units[u];
    std::set<TensorId> own;
    for (const TensorId id :
         kept_tensors(unit.graph, units.gradients[u].backward, {units.recompute}))
      if (held.emplace(piece_with(pieces, u), storage[unit.whole[id.index()].index()]).second)
        own.insert(id);
    activations[u] = bytes_held(
        Kept{own, kept_beside(units.forward[u], units.gradients[u].backward, {units.recompute})},
        units.forward[u]);
  }
  return activations;
}

std::vector<GraphParameters> parameters_of(const ShardedUnits& units,
                                           const std::vector<plan::UnitRange>& pieces) {
  PieceTensors held;
  std::vector<std::set<TensorId>> elsewhere(units.units.size());
  visit_parameters(units, [&](std::size_t u, TensorId id) {
    if (!held.emplace(piece_with(pieces, u), units.units[u].whole[id.index()]).second)
      elsewhere[u].insert(id);
  });
  std::vector<GraphParameters> parameters;
  for (std::size_t u = 0; u < units.units.size(); ++u)
    parameters.push_back(parameters_of(units.passes(u), elsewhere[u]));
  return parameters;
}

Result<std::optional<plan::TiedWeights>> tie_of(const ShardedUnits& units) {
  struct ParameterUse {
    std::size_t unit = 0;
    std::vector<Axis> over;
  };
  const auto last = units.units.size() - 1;
  std::optional<plan::TiedWeights> tie;
  Status fault;
  std::map<TensorId, ParameterUse> first;
  visit_parameters(units, [&](std::size_t u, TensorId id) {
    auto over = gradient_axes(units.passes(u), id);
    if (!over || !fault.ok()) return;
    const GraphUnit& unit = units.units[u];
    const auto [known, is_first] =
        first.try_emplace(unit.whole[id.index()], ParameterUse{u, *over});
    if (is_first) return;
    const ParameterUse& before = known->second;
    const Tensor& parameter = unit.graph[id];
    const auto refused = [&](std::string_view why) {
      return Error{
          Error::Code::kUnsupported,
          fmt::format("units '{}' and '{}' both train parameter '{}'; {}: leave out the "
                      "cuts between the two",
                      units.units[before.unit].graph.name, unit.graph.name, parameter.name, why)};
    };
    if (before.unit != 0 || u != last) {
      fault = refused("only the first and the last unit can share one");
    } else if (before.over != *over || (tie && tie->over != *over)) {
      fault = refused("what they share must be reduced over the same axes in both");
    } else {
      const ShardedGraph& forward = units.forward[u];
      if (!tie) tie = {.others = {static_cast<std::int32_t>(last), 1}, .over = *std::move(over)};
      tie->elements += local_elements(parameter, forward.attributes[id.index()], forward.mesh);
    }
  });
  FORESHARD_TRY(fault);
  return tie;
}

Result<std::vector<std::vector<NamedBoundary>>> boundaries_of(
    const ShardedUnits& units, const std::vector<plan::UnitRange>& pieces) {
  const Graph& graph = units.graph();
  std::vector<std::vector<NamedBoundary>> boundaries;
  for (std::size_t p = 0; p + 1 < pieces.size(); ++p) {
    const auto behind = static_cast<std::size_t>(pieces[p + 1].first);
    std::vector<NamedBoundary>& crossing = boundaries.emplace_back();
    for (const TensorId id : handed_over(units.units, behind)) {
      Attribute lies = units.whole.attributes[id.index()];
      lies.partial.clear();
      crossing.push_back(
          {graph[id].name,
           {.shape = graph[id].shape,
            .dtype = graph[id].dtype,
            .lies = lies,
            .sent = lies,
            .has_gradient = units.trains() && units.gradients[behind].handed.contains(id)}});
    }
    const bool returns = std::ranges::any_of(
        crossing, [](const NamedBoundary& one) { return one.boundary.has_gradient; });
    if (!crossing.empty() && (returns || !units.trains())) continue;
    return Error{Error::Code::kUnsupported,
                 fmt::format("{} passes from stage {} of the pipeline to stage {}{}; cut the graph "
                             "elsewhere, or give other strategy.layers_per_stage",
                             crossing.empty() ? "nothing" : "no tensor with a gradient", p, p + 1,
                             crossing.empty() ? "" : ", as nothing before is trained")};
  }
  return boundaries;
}

bool equivalent(const ShardedUnits& units, std::size_t a, std::size_t b) {
  return equivalent(units.units[a].graph, units.units[b].graph) &&
         (!units.trains() ||
          (equivalent(units.gradients[a].backward, units.gradients[b].backward) &&
           units.gradients[a].seeds == units.gradients[b].seeds));
}

}  // namespace foreshard::lower
