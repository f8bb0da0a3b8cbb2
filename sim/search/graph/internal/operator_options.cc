// The ways to split one operator and their costs (operator_options.h), for tables.cc. Times are
// seconds, memory is bytes on one device.
#include "sim/search/graph/internal/operator_options.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <utility>

#include "base/check.h"

#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/operators/build.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/program/lower/liveness.h"
#include "strategies/reshard/within_mesh.h"

namespace foreshard::search::internal {

ConversionTimes::ConversionTimes(const CostModel& cost, reshard::Placement placement,
                                 std::vector<MeshAxis> mesh)
    : cost_(cost), placement_(std::move(placement)), mesh_(mesh_from(std::move(mesh))) {}

Seconds ConversionTimes::operator()(const reshard::TensorSpec& tensor, const Attribute& from,
                                    const Attribute& to) {
  if (from == to) return {};
  const auto [place, is_new] = known_.try_emplace({tensor.dtype, tensor.shape, from, to});
  if (is_new) place->second = priced(tensor, from, to);
  return place->second;
}

Seconds ConversionTimes::priced(const reshard::TensorSpec& tensor, const Attribute& from,
                                const Attribute& to) {
  auto& own = tensors_[{tensor.dtype, tensor.shape}];
  if (own == nullptr) own = std::make_unique<PricedTensor>(tensor, cost_, placement_);
  const auto on_links = [&](const reshard::Step& step) { return own->price.on_links(step); };
  Seconds sum;
  for (const reshard::MeshStep& step : reshard::fastest_within(tensor, from, to, mesh_, on_links)) {
    const auto time = on_links({.primitive = step.primitive,
                                .from = {mesh_, step.from},
                                .to = {mesh_, step.to},
                                .axes = step.axes});
    if (!time) return Seconds::from_base(std::numeric_limits<double>::infinity());
    sum += *time;
  }
  return sum;
}

namespace {

// A graph of one operator and its operands.
struct SingleOperator {
  Graph graph{};
  std::map<TensorId, TensorId> of{};  ///< Tensor of the whole graph -> tensor of this graph.
};

Attribute without_summands(Attribute attribute) {
  attribute.partial.clear();
  return attribute;
}

SingleOperator alone(const Graph& graph, const Operator& op, const OperatorOption& option,
                     const std::set<TensorId>& read) {
  SingleOperator made{.graph = {.name = op.name}};
  const auto add = [&](TensorId id, const Attribute& lies) {
    const auto [place, is_new] = made.of.try_emplace(id);
    if (!is_new) return place->second;
    Tensor tensor = graph[id];
    tensor.pinned = lies;
    tensor.open.clear();
    tensor.gradient_of = {};
    place->second = made.graph.add(std::move(tensor));
    return place->second;
  };
  Operator copy = op;
  copy.splits = option.splits;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const bool is_new = !made.of.contains(op.inputs[i]);
    copy.inputs[i] = add(op.inputs[i], option.signature.inputs[i]);
    if (is_new && graph[op.inputs[i]].role == TensorRole::kActivation)
      made.graph.inputs.push_back(copy.inputs[i]);
  }
  for (std::size_t o = 0; o < op.outputs.size(); ++o) {
    copy.outputs[o] = add(op.outputs[o], without_summands(option.signature.outputs[o]));
    if (read.contains(op.outputs[o])) made.graph.outputs.push_back(copy.outputs[o]);
  }
  made.graph.operators.push_back(std::move(copy));
  return made;
}

// The layout in which the last operator that makes `tensor` leaves it; its own layout where no
// operator makes it.
Attribute as_made(const ShardedGraph& sharded, TensorId tensor) {
  const Graph& graph = *sharded.graph;
  for (std::size_t i = graph.operators.size(); i-- > 0;) {
    const Operator& op = graph.operators[i];
    const auto found = std::ranges::find(op.outputs, tensor);
    if (found == op.outputs.end()) continue;
    const auto at = static_cast<std::size_t>(found - op.outputs.begin());
    return sharded.operators[i].operands[op.inputs.size() + at];
  }
  return sharded.attributes[tensor.index()];
}

}  // namespace

OperatorOptions::OperatorOptions(const CostContext& context, ConversionTimes& conversions)
    : context_(context), conversions_(conversions) {
  const Graph& graph = context.graph;
  for (const Operator& op : graph.operators) read_.insert(op.inputs.begin(), op.inputs.end());
  read_.insert(graph.outputs.begin(), graph.outputs.end());
  if (context.strategy.mode == Mode::kForward) return;
  trained_ = trained(graph);
  Graph unannotated = graph;
  for (Tensor& tensor : unannotated.tensors) tensor.pinned.reset();
  const auto whole = distribute(unannotated, {{"none", 1}});
  FORESHARD_CHECK(whole);
  BackwardOptions options = backward_options(context.strategy);
  options.trained_before = false;
  const Graph backward = backward_graph(*whole, options);
  for (const TensorId id : saved_tensors(graph, backward)) saved_.insert(id);
}

const std::vector<OperatorOption>& OperatorOptions::of(std::size_t op) {
  const Operator& one = context_.graph.operators[op];
  const auto [place, is_new] = known_.try_emplace(key_of(one));
  if (is_new) place->second = made(one);
  return place->second;
}

// A key of everything that made() reads.
std::string OperatorOptions::key_of(const Operator& op) const {
  std::string key = op.type;
  for (const auto& [name, value] : op.settings.all()) key += " " + name + ":" + describe(value);
  std::map<TensorId, std::size_t> first;
  const auto note = [&](TensorId id) {
    const Tensor& tensor = context_.graph[id];
    const std::size_t number = first.try_emplace(id, first.size()).first->second;
    key += fmt::format(";{} {} {} {}{}{}{}{}{}", number, name_of(tensor.dtype),
                       fmt::join(tensor.shape, ","), static_cast<int>(tensor.role),
                       static_cast<int>(tensor.frozen), static_cast<int>(tensor.updated_by_rows),
                       static_cast<int>(trained_.contains(id)),
                       static_cast<int>(read_.contains(id)), static_cast<int>(saved_.contains(id)));
  };
  std::ranges::for_each(op.inputs, note);
  std::ranges::for_each(op.outputs, note);
  return key;
}

std::vector<OperatorOption> OperatorOptions::made(const Operator& op) {
  std::vector<OperatorOption> options;
  for (Splits& splits : legal_splits(op.rule, context_.mesh))
    options.push_back(option(op, std::move(splits)));
  return options;
}

OperatorOption OperatorOptions::option(const Operator& op, Splits splits) {
  OperatorOption option{.splits = std::move(splits)};
  option.signature = signature_of(op.rule, option.splits, context_.mesh);
  option.gradients.resize(op.inputs.size());
  const SingleOperator own = alone(context_.graph, op, option, read_);
  const auto sharded =
      distribute(own.graph, context_.mesh, Flow::kBothWays, backward_pass(context_.strategy));
  FORESHARD_CHECK(sharded);
  option.forward = kernels(*sharded);
  for (std::size_t o = 0; o < op.outputs.size(); ++o)
    if (saved_.contains(op.outputs[o]))
      option.kept += lower::local_bytes(context_.graph[op.outputs[o]], option.signature.outputs[o],
                                        context_.mesh);
  add_backward(op, option);
  return option;
}

void OperatorOptions::add_backward(const Operator& op, OperatorOption& option) {
  const bool flows = std::ranges::any_of(
      op.outputs, [&](TensorId id) { return trained_.contains(id) && read_.contains(id); });
  if (context_.strategy.mode == Mode::kForward || !flows) return;
  const SingleOperator own = alone(context_.graph, op, option, read_);
  const auto forward =
      distribute(own.graph, context_.mesh, Flow::kBothWays, BackwardPass::kFollows);
  FORESHARD_CHECK(forward);
  GradientsOfEnds ends;
  Graph backward = backward_graph(*forward, backward_options(context_.strategy), &ends);
  for (const auto& [output, gradient] : ends.outputs)
    if (!backward[gradient].pinned) backward[gradient].pinned = forward->attributes[output.index()];
  std::map<TensorId, TensorId> wanted;  // input of the whole graph -> gradient
  backward.outputs.clear();
  for (const TensorId id : op.inputs) {
    const auto gradient = ends.inputs.find(own.of.at(id));
    if (gradient == ends.inputs.end() || !trained_.contains(id)) continue;
    wanted[id] = gradient->second;
    backward.outputs.push_back(gradient->second);
  }
  prune(backward);
  const auto sharded = distribute(backward, context_.mesh);
  FORESHARD_CHECK(sharded);
  option.backward = kernels(*sharded);
  std::set<TensorId> ends_of_inputs;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const auto gradient = wanted.find(op.inputs[i]);
    if (gradient == wanted.end()) continue;
    ends_of_inputs.insert(gradient->second);
    option.gradients[i] = as_made(*sharded, gradient->second);
  }
  // Adds conversions between the operator's own backward operators. The last layout of an input's
  // gradient concerns the operators before it.
  for (const Conversion& conversion : sharded->conversions) {
    if (ends_of_inputs.contains(conversion.tensor)) continue;
    const Tensor& tensor = backward[conversion.tensor];
    option.backward += conversions_({tensor.dtype, tensor.shape}, conversion.from, conversion.to);
  }
  // Every parameter's gradient is reduced in the data type in which it is added up.
  std::map<TensorId, TensorId> last;
  for (std::size_t t = 0; t < backward.tensors.size(); ++t)
    if (const TensorId of = backward.tensors[t].gradient_of; of.valid())
      last[of] = TensorId{static_cast<std::int64_t>(t)};
  for (const auto& [parameter, gradient] : last) {
    Attribute lies = sharded->attributes[gradient.index()];
    const Attribute whole = without_summands(lies);
    option.reduction +=
        conversions_({backward[gradient].dtype, backward[gradient].shape}, lies, whole);
  }
}

Seconds OperatorOptions::kernels(const ShardedGraph& sharded) const {
  Seconds sum;
  const Graph& graph = *sharded.graph;
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const Operator& op = graph.operators[i];
    std::vector<std::vector<std::int64_t>> shapes;
    for (std::size_t o = 0; o < sharded.operators[i].operands.size(); ++o) {
      const TensorId id = o < op.inputs.size() ? op.inputs[o] : op.outputs[o - op.inputs.size()];
      shapes.push_back(
          largest_local_shape(graph[id].shape, sharded.operators[i].operands[o], sharded.mesh));
    }
    for (const Kernel& kernel : kernels_of(graph, op, shapes)) {
      Seconds slowest;
      for (const DeviceTypeId device : context_.devices)
        slowest = std::max(slowest, context_.cost.kernel_time(kernel, device));
      sum += slowest;
    }
  }
  return sum;
}

}  // namespace foreshard::search::internal
