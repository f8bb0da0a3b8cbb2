#include "sim/search/graph/tables.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

#include "sim/search/graph/internal/conversion_times.h"
#include "sim/search/graph/internal/operator_options.h"
#include "strategies/graph/mesh_axes.h"
#include "strategies/parallelism/state_sharding.h"
#include "strategies/program/lower/liveness.h"
#include "strategies/program/lower/lower.h"
#include "strategies/program/lower/optimizer_block.h"

namespace foreshard::search {
namespace {

using internal::ConversionTimes;
using internal::Ground;
using internal::OperatorOption;
using internal::OperatorOptions;

std::vector<MeshAxis> without_pipeline(std::vector<MeshAxis> axes) {
  for (MeshAxis& axis : axes)
    if (axis.name == "pipeline") axis.size = 1;
  return axes;
}

std::vector<DeviceTypeId> device_types(const MeshOfGraph& mesh) {
  std::int64_t ranks = 1;
  for (const MeshAxis& axis : without_pipeline(mesh.axes)) ranks *= axis.size;
  std::set<DeviceTypeId> types;
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    types.insert(mesh.placement.cluster->devices()[mesh.placement.device(rank).index()].type);
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
        ground_{.graph = graph,
                .strategy = strategy,
                .mesh = without_pipeline(mesh.axes),
                .cost = *mesh.cost,
                .devices = device_types(mesh)},
        conversions_(*mesh.cost, mesh.placement, ground_.mesh),
        options_(ground_, conversions_) {
    const auto stages = static_cast<double>(strategy.pipeline_parallel);
    passes_ = (static_cast<double>(strategy.micro_batches()) + stages - 1) / stages;
    share_ = 1 / stages;
    const auto element = lower::element_bytes(strategy);
    parameter_bytes_ = element.parameter;
    if (strategy.mode == Mode::kForward) return;
    gradient_bytes_ = size_of(strategy.framework->gradients_of(strategy.precision));
    optimizer_bytes_ = element.optimizer;
    update_ = update_of_element();
  }

  Tables run() {
    const std::size_t tensors = graph_.tensors.size();
    producer_.resize(tensors);
    readers_.resize(tensors);
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
      if (readers_[t].empty()) continue;
      if (graph_.tensors[t].role == TensorRole::kActivation) {
        add_activation(t);
      } else if (readers_[t].size() > 1) {
        add_parameter(t);
      }
    }
    return std::move(tables_);
  }

 private:
  struct Use {
    std::size_t op = 0;
    std::size_t operand = 0;
  };

  // What the optimizer takes for an element that a rank updates.
  Seconds update_of_element() const {
    constexpr std::int64_t kMany = std::int64_t{1} << 26;
    Seconds sum;
    for (const UpdateStep& step :
         lower::update_steps(strategy_, ground_.mesh, {{.elements = kMany}})) {
      const auto* kernel = std::get_if<UpdateKernel>(&step);
      if (kernel == nullptr) continue;
      for (const DeviceTypeId device : ground_.devices)
        sum +=
            static_cast<double>(kernel->times) * ground_.cost.kernel_time(kernel->kernel, device);
    }
    return sum / static_cast<double>(kMany) / static_cast<double>(ground_.devices.size());
  }

  // Elements of a parameter on one rank, and of these the part that ZeRO leaves it.
  std::pair<double, double> held(const Tensor& tensor, const Attribute& lies) const {
    double whole = 1;
    for (const std::int64_t extent : largest_local_shape(tensor.shape, lies, ground_.mesh))
      whole *= static_cast<double>(extent);
    const auto copies = without(shard_axes(ground_.mesh), lies.dims);
    return {whole, whole / static_cast<double>(ways(copies, ground_.mesh))};
  }

  // What a parameter that lies so costs and takes.
  void add_parameter_to(Variable& variable, std::size_t option, const Tensor& tensor,
                        const Attribute& lies) const {
    const StateSharding states = state_sharding(strategy_);
    const auto [whole, shard] = held(tensor, lies);
    Bytes bytes = parameter_bytes_ * (states.cuts_parameters ? shard : whole);
    if (!is_trained(tensor)) bytes = size_of(tensor.dtype) * whole;
    if (is_trained(tensor)) {
      bytes += gradient_bytes_ * (states.cuts_gradients ? shard : whole);
      bytes += optimizer_bytes_ * (states.cuts_optimizer ? shard : whole);
      variable.cost[option] +=
          share_ * (update_ * (states.cuts_optimizer ? shard : whole)).in_base();
    }
    variable.load[option] += share_ * bytes.in_base();
  }

  void add_operator(std::size_t i) {
    const Operator& op = graph_.operators[i];
    const std::vector<OperatorOption>& options = options_.of(i);
    Variable variable{.name = op.name};
    tables_.splits.emplace_back();
    for (std::size_t n = 0; n < options.size(); ++n) {
      const OperatorOption& option = options[n];
      tables_.splits.back().push_back(option.splits);
      variable.cost.push_back(passes_ * (option.forward + option.backward).in_base() +
                              share_ * option.reduction.in_base());
      variable.load.push_back(strategy_.recompute == Recompute::kNone ? option.kept.in_base()
                                                                      : 0.0);
      for (std::size_t o = 0; o < op.inputs.size(); ++o) {
        const Tensor& tensor = graph_[op.inputs[o]];
        if (tensor.role != TensorRole::kParameter || !seen_first(i, o)) continue;
        add_parameter_to(variable, n, tensor, option.signature.inputs[o]);
      }
    }
    tables_.variable_of.push_back(tables_.problem.variables.size());
    tables_.problem.variables.push_back(std::move(variable));
  }

  bool seen_first(std::size_t op, std::size_t operand) const {
    const Use& first = readers_[graph_.operators[op].inputs[operand].index()].front();
    return first.op == op && first.operand == operand;
  }

  // A parameter that several operators read lies as all of them need it.
  void add_parameter(std::size_t t) {
    std::vector<TensorState>& states = tables_.states[t];
    for (const Use& use : readers_[t])
      for (const OperatorOption& option : options_.of(use.op))
        note(states, {option.signature.inputs[use.operand], {}});
    const std::size_t variable = add_variable(t);
    for (const Use& use : readers_[t]) {
      const auto& options = options_.of(use.op);
      tables_.problem.add(
          tables_.variable_of[use.op], variable, [&](std::size_t option, std::size_t state) {
            return options[option].signature.inputs[use.operand] == states[state].lies ? 0.0
                                                                                       : kForbidden;
          });
    }
  }

  void add_activation(std::size_t t) {
    note_states(t);
    const std::size_t variable = add_variable(t);
    if (producer_[t]) add_producer(t, variable);
    std::set<std::size_t> seen;  // readers that are known to read it
    for (const Use& use : readers_[t]) add_reader(t, use, variable, seen.insert(use.op).second);
  }

  // As its producer makes it or a reader needs it; its gradient as readers leave it where that lies
  // so but for summands, or added up.
  void note_states(std::size_t t) {
    std::vector<Attribute> lies;
    const auto note_attribute = [&](const Attribute& attribute) {
      if (std::ranges::find(lies, attribute) == lies.end()) lies.push_back(attribute);
    };
    if (producer_[t])
      for (const OperatorOption& option : options_.of(producer_[t]->op))
        note_attribute(whole_of(option.signature.outputs[producer_[t]->operand]));
    std::set<Attribute> gradients;
    for (const Use& use : readers_[t]) {
      for (const OperatorOption& option : options_.of(use.op)) {
        note_attribute(option.signature.inputs[use.operand]);
        if (option.gradients[use.operand]) gradients.insert(*option.gradients[use.operand]);
      }
    }
    // Of equal costs the first is taken: that which puts least on a rank.
    std::ranges::stable_sort(lies, {}, [&](const Attribute& one) {
      return lower::local_elements(graph_.tensors[t], one, ground_.mesh);
    });
    std::vector<TensorState>& states = tables_.states[t];
    for (const Attribute& one : lies) note(states, {one, one});
    if (!producer_[t]) return;
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
    return variable;
  }

  double time(std::size_t t, const Attribute& from, const Attribute& to) {
    const Tensor& tensor = graph_.tensors[t];
    return passes_ * conversions_({tensor.dtype, tensor.shape}, from, to).in_base();
  }

  bool has_gradient(std::size_t t) const {
    return strategy_.mode == Mode::kTrain &&
           options_.is_trained(TensorId{static_cast<std::int64_t>(t)});
  }

  void add_producer(std::size_t t, std::size_t variable) {
    const Use use = *producer_[t];
    const auto& options = options_.of(use.op);
    const auto& states = tables_.states[t];
    const bool trained = has_gradient(t);
    tables_.problem.add(tables_.variable_of[use.op], variable,
                        [&](std::size_t option, std::size_t state) {
                          const Attribute& made = options[option].signature.outputs[use.operand];
                          double cost = time(t, made, states[state].lies);
                          if (trained) cost += time(t, states[state].gradient, whole_of(made));
                          return cost;
                        });
  }

  void add_reader(std::size_t t, const Use& use, std::size_t variable, bool is_first) {
    const auto& options = options_.of(use.op);
    const auto& states = tables_.states[t];
    const bool trained = has_gradient(t) && is_first;
    tables_.problem.add(
        tables_.variable_of[use.op], variable, [&](std::size_t option, std::size_t state) {
          double cost = time(t, states[state].lies, options[option].signature.inputs[use.operand]);
          const auto& gradient = options[option].gradients[use.operand];
          if (!trained || !gradient) return cost;
          if (!states[state].gradient.partial.empty() && *gradient != states[state].gradient)
            return kForbidden;  // values are not added to summands
          return cost + time(t, *gradient, states[state].gradient);
        });
  }

  const Graph& graph_;
  const Strategy& strategy_;
  Ground ground_;
  ConversionTimes conversions_;
  OperatorOptions options_;
  double passes_ = 1;
  double share_ = 1;  // of the graph, on one stage
  Bytes parameter_bytes_{};
  Bytes gradient_bytes_{};
  Bytes optimizer_bytes_{};
  Seconds update_{};
  std::vector<std::optional<Use>> producer_;
  std::vector<std::vector<Use>> readers_;
  Tables tables_;
};

}  // namespace

Tables tables_of(const Graph& graph, const Strategy& strategy, const MeshOfGraph& mesh) {
  return Builder(graph, strategy, mesh).run();
}

}  // namespace foreshard::search
