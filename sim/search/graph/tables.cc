// Turns a graph on a mesh into a problem of choices (tables.h), for search.cc and pipeline.cc of
// this folder.
#include "sim/search/graph/tables.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

#include "sim/search/graph/internal/operator_options.h"
#include "strategies/graph/mesh_axes.h"
#include "strategies/graph/rebatch.h"
#include "strategies/parallelism/pipeline.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/lower/liveness.h"
#include "strategies/program/lower/lower.h"
#include "strategies/program/lower/optimizer_block.h"

namespace foreshard::search {
namespace {

using internal::ConversionTimes;
using internal::CostContext;
using internal::OperatorOption;
using internal::OperatorOptions;

std::vector<MeshAxis> without_pipeline(std::vector<MeshAxis> axes) {
  for (MeshAxis& axis : axes)
    if (axis.name == "pipeline") axis.size = 1;
  return axes;
}

std::vector<DeviceTypeId> device_types(const reshard::Placement& placement,
                                       const std::vector<MeshAxis>& axes) {
  std::int64_t ranks = 1;
  for (const MeshAxis& axis : axes) ranks *= axis.size;
  std::set<DeviceTypeId> types;
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    types.insert(placement.cluster->devices()[placement.device(rank).index()].type);
  return {types.begin(), types.end()};
}

Attribute whole_of(Attribute attribute) {
  attribute.partial.clear();
  return attribute;
}

class Builder {
 public:
  Builder(const Graph& graph, const Strategy& strategy, const MeshOfGraph& mesh)
      : graph_(graph),
        strategy_(strategy),
        mesh_(mesh),
        axes_(without_pipeline(mesh.axes)),
        stage_of_(mesh.stage_of) {
    for (std::size_t s = 0; s < std::max<std::size_t>(mesh.devices_of_stage.size(), 1); ++s)
      stages_.push_back(std::make_unique<Stage>(graph, strategy, mesh, axes_, s));
    add_rounds();
    const auto element = lower::element_bytes(strategy);
    parameter_bytes_ = element.parameter;
    if (strategy.mode == Mode::kForward) return;
    gradient_bytes_ = size_of(strategy.framework->gradients_of(strategy.precision));
    optimizer_bytes_ = element.optimizer;
    for (const auto& stage : stages_) stage->update = update_of_element(stage->context);
  }

  Tables run() {
    const std::size_t tensors = graph_.tensors.size();
    producer_.resize(tensors);
    readers_.resize(tensors);
    find_together();
    for (std::size_t i = 0; i < graph_.operators.size(); ++i) {
      const Operator& op = graph_.operators[i];
      for (std::size_t o = 0; o < op.inputs.size(); ++o)
        readers_[op.inputs[o].index()].push_back({i, o});
      for (std::size_t o = 0; o < op.outputs.size(); ++o)
        producer_[op.outputs[o].index()] = Use{i, o};
      add_operator(i);
    }
    tables_.states.resize(tensors);
    tables_.variable_of_tensor.resize(tensors);
    for (std::size_t t = 0; t < tensors; ++t) {
      if (readers_[t].empty() && together_[t].size() == 1) continue;
      if (graph_.tensors[t].role == TensorRole::kActivation) {
        add_activation(t);
      } else if (readers_[t].size() > 1) {
        add_parameter(t);
      }
    }
    for (const auto& [a, b] : mesh_.alike) lie_alike(a.index(), b.index());
    tables_.pass = std::exchange(tables_.problem, {});
    tables_.problem = tables_.weighted(
        std::vector(tables_.stages(), 1.0 / static_cast<double>(tables_.stages())));
    if (stages_.size() == 1) tables_.pass = {};
    return std::move(tables_);
  }

 private:
  // All that the costs of a stage depend on.
  struct Stage {
    Stage(const Graph& whole, const Strategy& strategy, const MeshOfGraph& mesh,
          const std::vector<MeshAxis>& axes, std::size_t number)
        : graph(*rebatched(whole, mesh.batch, mesh.batch * strategy.granularity_of(number))),
          placement(mesh.devices_of_stage.empty()
                        ? mesh.placement
                        : reshard::Placement{.cluster = mesh.placement.cluster,
                                             .device_of_rank = mesh.devices_of_stage[number]}),
          context{.graph = graph,
                  .strategy = strategy,
                  .mesh = axes,
                  .cost = *mesh.cost,
                  .devices = device_types(placement, axes)},
          conversions(*mesh.cost, placement, axes),
          options(context, conversions) {}

    Graph graph;  // with shapes for the micro-batches of a pass
    reshard::Placement placement;
    CostContext context;
    ConversionTimes conversions;
    OperatorOptions options;
    Seconds update{};  // time per element that a rank updates
    double alive = 1;  // passes whose activations are kept at once
  };

  // Passes, rounds and kept activations as in 1F1B (schedule/granular.cc).
  void add_rounds() {
    std::int64_t most = 1;
    for (std::size_t s = 0; s < stages_.size(); ++s)
      most = std::max(most, strategy_.granularity_of(s));
    std::int64_t ahead = 0;
    for (std::size_t s = stages_.size(); s-- > 0;) {
      const std::int64_t own = strategy_.granularity_of(s);
      ahead += s + 1 == stages_.size() ? own : std::max(own, strategy_.granularity_of(s + 1));
      ahead = (ahead + own - 1) / own * own;
      const std::int64_t alive =
          stages_.size() == 1 ? 1 : std::min(ahead, strategy_.micro_batches()) / own;
      const std::int64_t passes = most / own;
      stages_[s]->alive = static_cast<double>(alive);
      tables_.passes.insert(tables_.passes.begin(), static_cast<double>(passes));
    }
    tables_.rounds = static_cast<double>(strategy_.micro_batches()) / static_cast<double>(most);
    if (stages_.size() > 1) {
      blocking_ = transfers_block(strategy_);
      for (std::size_t s = 0; !blocking_ && s + 1 < stages_.size(); ++s) {
        const std::int64_t messages =
            most / std::min(strategy_.granularity_of(s), strategy_.granularity_of(s + 1));
        tables_.passes.push_back(static_cast<double>(messages));
      }
      return;
    }
    // All stages take equal times, if there are several.
    const auto stages = static_cast<double>(strategy_.pipeline_parallel);
    share_ = 1 / stages;
    tables_.passes = {(tables_.rounds + stages - 1) / stages / tables_.rounds};
  }

  std::size_t stage_of(std::size_t op) const { return stage_of_.empty() ? 0 : stage_of_[op]; }
  // How often an operator runs in a pass, and how many copies of its parameters a device has.
  double runs(std::size_t op) const { return mesh_.runs.empty() ? 1 : mesh_.runs[op]; }
  double copies(std::size_t op) const {
    return share_ * (mesh_.copies.empty() ? 1 : mesh_.copies[op]);
  }
  Stage& stage(std::size_t op) { return *stages_[stage_of(op)]; }
  const Stage& stage(std::size_t op) const { return *stages_[stage_of(op)]; }
  const std::vector<OperatorOption>& options_of(std::size_t op) { return stage(op).options.of(op); }

  struct Use {
    std::size_t op = 0;
    std::size_t operand = 0;
  };

  // The optimizer's time per element that a rank updates.
  Seconds update_of_element(const CostContext& context) const {
    constexpr std::int64_t kMany = std::int64_t{1} << 26;
    Seconds sum;
    for (const UpdateStep& step : lower::update_steps(strategy_, axes_, {{.elements = kMany}})) {
      const auto* kernel = std::get_if<UpdateKernel>(&step);
      if (kernel == nullptr) continue;
      for (const DeviceTypeId device : context.devices)
        sum +=
            static_cast<double>(kernel->times) * context.cost.kernel_time(kernel->kernel, device);
    }
    return sum / static_cast<double>(kMany) / static_cast<double>(context.devices.size());
  }

  // Elements of a parameter on one rank, and how many of them ZeRO leaves to it.
  std::pair<double, double> held(const Tensor& tensor, const Attribute& lies) const {
    double whole = 1;
    for (const std::int64_t extent : largest_local_shape(tensor.shape, lies, axes_))
      whole *= static_cast<double>(extent);
    const auto copies = without(shard_axes(axes_), lies.dims);
    return {whole, whole / static_cast<double>(ways(copies, axes_))};
  }

  // Adds the cost per step and the memory of a parameter in the layout `lies`.
  void add_parameter_to(Variable& variable, double& once, std::size_t option, const Tensor& tensor,
                        const Attribute& lies, Seconds update, double copies) const {
    const StateSharding states = state_sharding(strategy_);
    const auto [whole, shard] = held(tensor, lies);
    Bytes bytes = parameter_bytes_ * (states.cuts_parameters ? shard : whole);
    if (!is_trained(tensor)) bytes = size_of(tensor.dtype) * whole;
    if (is_trained(tensor)) {
      bytes += gradient_bytes_ * (states.cuts_gradients ? shard : whole);
      bytes += optimizer_bytes_ * (states.cuts_optimizer ? shard : whole);
      once += copies * (update * (states.cuts_optimizer ? shard : whole)).in_base();
    }
    variable.load[option] += copies * bytes.in_base();
  }

  void add_operator(std::size_t i) {
    const Operator& op = graph_.operators[i];
    const std::vector<OperatorOption>& options = options_of(i);
    Variable variable{.name = op.name};
    tables_.splits.emplace_back();
    std::vector<double>& once = tables_.once.emplace_back();
    std::vector<double>& forward = tables_.forward.emplace_back();
    tables_.stage_of.push_back(stage_of(i));
    for (std::size_t n = 0; n < options.size(); ++n) {
      const OperatorOption& option = options[n];
      tables_.splits.back().push_back(option.splits);
      variable.cost.push_back(runs(i) * (option.forward + option.backward).in_base());
      once.push_back(copies(i) * option.reduction.in_base());
      forward.push_back(runs(i) * option.forward.in_base());
      variable.load.push_back(strategy_.recompute == Recompute::kNone
                                  ? stage(i).alive * runs(i) * option.kept.in_base()
                                  : 0.0);
      for (std::size_t o = 0; o < op.inputs.size(); ++o) {
        const Tensor& tensor = graph_[op.inputs[o]];
        if (tensor.role != TensorRole::kParameter || !seen_first(i, o)) continue;
        add_parameter_to(variable, once.back(), n, tensor, option.signature.inputs[o],
                         stage(i).update, copies(i));
      }
    }
    tables_.variable_of.push_back(tables_.problem.variables.size());
    tables_.problem.variables.push_back(std::move(variable));
  }

  bool seen_first(std::size_t op, std::size_t operand) const {
    const Use& first = readers_[graph_.operators[op].inputs[operand].index()].front();
    return first.op == op && first.operand == operand;
  }

  // Adds a parameter that several operators read, and allows only layouts that all of them need.
  void add_parameter(std::size_t t) {
    std::vector<TensorState>& states = tables_.states[t];
    for (const Use& use : readers_[t])
      for (const OperatorOption& option : options_of(use.op))
        note(states, {option.signature.inputs[use.operand], {}});
    const std::size_t variable = add_variable(t);
    for (const Use& use : readers_[t]) {
      const auto& options = options_of(use.op);
      tables_.problem.add(
          tables_.variable_of[use.op], variable, [&](std::size_t option, std::size_t state) {
            return options[option].signature.inputs[use.operand] == states[state].layout
                       ? 0.0
                       : kForbidden;
          });
    }
  }

  // Finds, for each tensor, the tensors that must have the same layout, itself among them.
  void find_together() {
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) together_.push_back({t});
    for (const auto& [a, b] : mesh_.alike) {
      std::set<std::size_t> all = together_[a.index()];
      all.merge(std::set(together_[b.index()]));
      for (const std::size_t t : all) together_[t] = all;
    }
  }

  void lie_alike(std::size_t a, std::size_t b) {
    const auto& own = tables_.states[a];
    const auto& other = tables_.states[b];
    tables_.problem.add(
        *tables_.variable_of_tensor[a], *tables_.variable_of_tensor[b],
        [&](std::size_t i, std::size_t j) { return own[i] == other[j] ? 0.0 : kForbidden; });
  }

  void add_activation(std::size_t t) {
    note_states(t);
    const std::size_t variable = add_variable(t);
    if (producer_[t]) add_producer(t, variable);
    if (const auto crossing = crossing_before(t)) add_transfer(t, variable, *crossing);
    std::set<std::size_t> seen;  // readers that were visited
    for (const Use& use : readers_[t]) add_reader(t, use, variable, seen.insert(use.op).second);
  }

  // The crossing over which another stage receives the tensor: the one before the first such stage.
  // Nothing where no later stage reads it.
  std::optional<std::size_t> crossing_before(std::size_t t) const {
    if (!producer_[t]) return std::nullopt;
    std::optional<std::size_t> first;
    for (const Use& use : readers_[t])
      if (stage_of(use.op) > stage_of(producer_[t]->op))
        first = std::min(first.value_or(stage_of(use.op)), stage_of(use.op));
    if (!first) return std::nullopt;
    return *first - 1;
  }

  // Adds the time of a tensor's messages, there and its gradient's back, on the idle link of one
  // pair of ranks. Where hosts wait for transfers, the stage that reads the tensor does nothing
  // else meanwhile; else the crossing counts as a stage of its own, which may set the pace.
  void add_transfer(std::size_t t, std::size_t variable, std::size_t crossing) {
    const std::size_t reader = crossing + 1;
    const std::int64_t own = strategy_.granularity_of(reader);
    const std::int64_t message = std::min(own, strategy_.granularity_of(crossing));
    const std::int64_t messages = own / message;
    const Tensor& tensor = graph_.tensors[t];
    const int ways = has_gradient(t) ? 2 : 1;
    for (std::size_t n = 0; n < tables_.states[t].size(); ++n) {
      const Bytes bytes =
          size_of(tensor.dtype) * static_cast<double>(message) *
          static_cast<double>(lower::local_elements(tensor, tables_.states[t][n].layout, axes_));
      const auto time =
          mesh_.cost->communication_time(program::CollectiveKind::kSend, bytes,
                                         {DeviceId{mesh_.devices_of_stage[crossing].front()},
                                          DeviceId{mesh_.devices_of_stage[reader].front()}});
      tables_.problem.variables[variable].cost[n] +=
          time ? ways * time->in_base() * (blocking_ ? static_cast<double>(messages) : 1.0)
               : kForbidden;
    }
    tables_.stage_of[variable] = blocking_ ? reader : stages_.size() + crossing;
  }

  // Lists the states of an activation: every layout that its producer makes or a reader needs, with
  // its gradient in that layout, or as readers leave it where that differs only in partial sums.
  void note_states(std::size_t t) {
    std::vector<Attribute> lies;
    const auto note_attribute = [&](const Attribute& attribute) {
      if (std::ranges::find(lies, attribute) == lies.end()) lies.push_back(attribute);
    };
    std::set<Attribute> gradients;
    for (const std::size_t one : together_[t]) {
      if (producer_[one])
        for (const OperatorOption& option : options_of(producer_[one]->op))
          note_attribute(whole_of(option.signature.outputs[producer_[one]->operand]));
      for (const Use& use : readers_[one]) {
        for (const OperatorOption& option : options_of(use.op)) {
          note_attribute(option.signature.inputs[use.operand]);
          if (option.gradients[use.operand]) gradients.insert(*option.gradients[use.operand]);
        }
      }
    }
    // Among equal costs the first state is taken: the layout that puts least on a rank.
    std::ranges::stable_sort(lies, {}, [&](const Attribute& one) {
      return lower::local_elements(graph_.tensors[t], one, axes_);
    });
    std::vector<TensorState>& states = tables_.states[t];
    for (const Attribute& one : lies) note(states, {one, one});
    if (!producer_[t] && together_[t].size() == 1) return;
    for (const Attribute& one : lies)
      for (const Attribute& gradient : gradients)
        if (!gradient.partial.empty() && whole_of(gradient) == one) note(states, {one, gradient});
  }

  static void note(std::vector<TensorState>& states, TensorState state) {
    if (std::ranges::find(states, state) == states.end()) states.push_back(std::move(state));
  }

  std::size_t add_variable(std::size_t t) {
    const std::size_t variable = tables_.problem.variables.size();
    tables_.variable_of_tensor[t] = variable;
    tables_.problem.variables.push_back({.name = graph_.tensors[t].name,
                                         .cost = std::vector<double>(tables_.states[t].size()),
                                         .load = {}});
    tables_.once.emplace_back(tables_.states[t].size());
    tables_.forward.emplace_back(tables_.states[t].size());
    tables_.stage_of.push_back(0);  // it has no cost
    return variable;
  }

  // Time of a conversion in a pass of the stage that has the operator.
  double time(std::size_t op, std::size_t t, const Attribute& from, const Attribute& to) {
    Stage& own = stage(op);
    const Tensor& tensor = own.graph.tensors[t];
    return runs(op) * own.conversions({tensor.dtype, tensor.shape}, from, to).in_base();
  }

  bool has_gradient(std::size_t t) const {
    return strategy_.mode == Mode::kTrain &&
           stages_.front()->options.is_trained(TensorId{static_cast<std::int64_t>(t)});
  }

  void add_producer(std::size_t t, std::size_t variable) {
    const Use use = *producer_[t];
    const auto& options = options_of(use.op);
    const auto& states = tables_.states[t];
    const bool trained = has_gradient(t);
    tables_.problem.add(tables_.variable_of[use.op], variable,
                        [&](std::size_t option, std::size_t state) {
                          const Attribute& made = options[option].signature.outputs[use.operand];
                          double cost = time(use.op, t, made, states[state].layout);
                          if (trained)
                            cost += time(use.op, t, states[state].gradient, whole_of(made));
                          return cost;
                        });
  }

  void add_reader(std::size_t t, const Use& use, std::size_t variable, bool is_first) {
    const auto& options = options_of(use.op);
    const auto& states = tables_.states[t];
    const bool trained = has_gradient(t) && is_first;
    tables_.problem.add(
        tables_.variable_of[use.op], variable, [&](std::size_t option, std::size_t state) {
          double cost =
              time(use.op, t, states[state].layout, options[option].signature.inputs[use.operand]);
          const auto& gradient = options[option].gradients[use.operand];
          if (!trained || !gradient) return cost;
          if (!states[state].gradient.partial.empty() && *gradient != states[state].gradient)
            return kForbidden;  // whole values are not added to partial sums
          return cost + time(use.op, t, *gradient, states[state].gradient);
        });
  }

  const Graph& graph_;
  const Strategy& strategy_;
  const MeshOfGraph& mesh_;
  std::vector<MeshAxis> axes_;
  double share_ = 1;                   // the part of the graph that a stage has
  bool blocking_ = false;              // passes wait for sends
  std::vector<std::size_t> stage_of_;  // operator -> stage; empty: one stage
  std::vector<std::unique_ptr<Stage>> stages_;
  Bytes parameter_bytes_{};
  Bytes gradient_bytes_{};
  Bytes optimizer_bytes_{};
  std::vector<std::optional<Use>> producer_;
  std::vector<std::vector<Use>> readers_;
  std::vector<std::set<std::size_t>> together_;
  Tables tables_;
};

}  // namespace

Problem Tables::weighted(const std::vector<double>& parts) const {
  Problem sum = pass.variables.empty() ? problem : pass;
  const auto weight = [&](std::size_t variable) {
    const std::size_t stage = stage_of[variable];
    return passes[stage] * (1 + (rounds - 1) * parts[stage]);
  };
  for (std::size_t v = 0; v < sum.variables.size(); ++v)
    for (std::size_t n = 0; n < sum.variables[v].cost.size(); ++n)
      sum.variables[v].cost[n] =
          weight(v) * sum.variables[v].cost[n] + parts[stage_of[v]] * once[v][n];
  for (Pair& pair : sum.pairs)
    for (double& cost : pair.cost) cost *= weight(pair.a);
  return sum;
}

Tables tables_of(const Graph& graph, const Strategy& strategy, const MeshOfGraph& mesh) {
  return Builder(graph, strategy, mesh).run();
}

}  // namespace foreshard::search
