// Counts parameters and arithmetic, of any graph and of a transformer's blocks (model.h).
#include "strategies/graph/counts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/mesh_axes.h"
#include "strategies/graph/model.h"
#include "strategies/graph/operators/build.h"
#include "strategies/graph/transformer.h"

namespace foreshard {
namespace {

// Arithmetic of the forward pass of an operator without bodies, except memory-bound kernels.
struct OperatorFlops {
  Flops products{};  // matrix products and convolutions
  Flops others{};    // attention, recurrences
};
using OperatorCount = std::function<OperatorFlops(const Graph&, const Operator&)>;

// `weight_of`: how much the arithmetic of an attention kernel counts.
template <class WeightOf>
OperatorFlops flops_of_kernels(const Graph& graph, const Operator& op, WeightOf weight_of) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (const TensorId id : op.inputs) shapes.push_back(graph[id].shape);
  for (const TensorId id : op.outputs) shapes.push_back(graph[id].shape);
  OperatorFlops sum;
  for (const Kernel& kernel : kernels_of(graph, op, shapes)) {
    if (std::holds_alternative<Gemm>(kernel)) sum.products += flops_of(kernel);
    if (const auto* attention = std::get_if<Attention>(&kernel))
      sum.others += weight_of(*attention) * flops_of(kernel);
  }
  return sum;
}

OperatorFlops executed_flops(const Graph& graph, const Operator& op) {
  return flops_of_kernels(graph, op, [](const Attention&) { return 1.0; });
}

// Adds up the arithmetic of the operators of a graph.
class FlopsSum {
 public:
  FlopsSum(OperatorCount count, BackwardPass backward)
      : count_(std::move(count)), trains_(backward == BackwardPass::kFollows) {}

  // `inputs`: the graph's inputs that depend on something trained.
  Flops of(const Graph& graph, const std::vector<TensorId>& inputs) const {
    const std::set<TensorId> reached = trains_ ? trained(graph, inputs) : std::set<TensorId>{};
    const auto is_wanted = [&](TensorId id) {
      return trains_ && (learns(graph[id]) || reached.contains(id));
    };
    Flops sum;
    for (const Operator& op : graph.operators) {
      if (op.bodies.empty()) sum += of_operator(graph, op, is_wanted);
      for (std::size_t i = 0; i < op.bodies.size(); ++i) {
        const Graph& body = graph.bodies[static_cast<std::size_t>(op.bodies[i])];
        const bool learns_inside = reached.contains(op.outputs.front());
        std::vector<TensorId> behind;
        for (std::size_t n = 0; n < std::min(body.inputs.size(), op.inputs.size()); ++n)
          if (learns_inside || is_wanted(op.inputs[n])) behind.push_back(body.inputs[n]);
        sum += body_weight(op, i) * of(body, behind);
      }
    }
    return sum;
  }

 private:
  template <class IsWanted>
  Flops of_operator(const Graph& graph, const Operator& op, IsWanted is_wanted) const {
    constexpr std::size_t kFactors = 2;
    const OperatorFlops forward = count_(graph, op);
    const auto end =
        op.inputs.begin() + static_cast<std::ptrdiff_t>(std::min(op.inputs.size(), kFactors));
    const auto wanted = static_cast<double>(std::count_if(op.inputs.begin(), end, is_wanted));
    const double others = std::ranges::any_of(op.inputs, is_wanted) ? 2 : 0;
    return (1 + wanted) * forward.products + (1 + others) * forward.others;
  }

  OperatorCount count_;
  bool trains_;
};

// A block of a transformer, and how often the model has it.
struct CountedBlock {
  Graph graph{};
  std::int64_t times = 1;
  bool is_trained_before = true;  // something before the block is trained
};

// Every expert has a slot for each token, so that the part of it that tokens take is a whole
// number.
std::vector<CountedBlock> blocks_of(const Model& model) {
  TransformerGraphs graphs = transformer_graphs(
      model, {.mesh = {{"tensor", 1}, {"data", 1}},
              .capacity_factor = static_cast<double>(std::max<std::int64_t>(1, model.experts))});
  std::vector<CountedBlock> blocks;
  blocks.push_back({.graph = std::move(graphs.embedding)});
  const std::vector<LayerKind> kinds = model.layer_kinds();
  for (std::size_t i = 0; i < kinds.size(); ++i)
    blocks.push_back({.graph = std::move(graphs.layers[i]),
                      .times = 0,
                      .is_trained_before = !kinds[i].frozen || !model.freezes_embedding()});
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const auto kind = std::ranges::find(kinds, model.kind_of_layer(layer));
    ++blocks[1 + static_cast<std::size_t>(kind - kinds.begin())].times;
  }
  for (Graph& prediction : graphs.predictions) blocks.push_back({.graph = std::move(prediction)});
  blocks.push_back({.graph = std::move(graphs.head)});
  return blocks;
}

struct ParameterCount {
  std::int64_t all = 0;
  std::int64_t trained = 0;
  std::int64_t routed = 0;  // the part of `all` in routed experts
};

ParameterCount parameters_of(const Model& model) {
  ParameterCount sum;
  for (const CountedBlock& block : blocks_of(model)) {
    for (std::size_t t = 0; t < block.graph.tensors.size(); ++t) {
      const Tensor& tensor = block.graph.tensors[t];
      if (tensor.role != TensorRole::kParameter) continue;
      const TensorId id{static_cast<std::int64_t>(t)};
      const std::int64_t count = block.times * elements(tensor);
      sum.all += count;
      if (!tensor.frozen) sum.trained += count;
      if (kind_of(block.graph, id) == Parameters::kExperts) sum.routed += count;
    }
  }
  // Each block that reads the embedding's table has it among its parameters.
  const std::int64_t repeated = model.tables_behind() * model.vocabulary * model.hidden;
  sum.all -= repeated;
  if (!model.freezes_embedding()) sum.trained -= repeated;
  return sum;
}

// How much an attention kernel counts: all scores of a causal mask do, and lengths of packed
// samples are not rounded.
double score_weight(const Model& model, const Attention& attention) {
  if (!attention.causal) return 1;
  if (!model.has_packed_samples()) return 2;
  return 2 * model.samples->keys_of_query(attention.window) / scores_per_query(attention);
}

// Arithmetic of an operator of a transformer as model_flops() counts it.
OperatorFlops published_flops(const Model& model, const Graph& graph, const Operator& op) {
  if (op.type == "ssd_scan") {
    // Source: NVIDIA/Megatron-LM, megatron/training/training.py (mamba_layer_flops).
    constexpr double kPerNumber = 7;  // operations for each number of the state
    const std::int64_t numbers = elements(graph[op.outputs[0]]) * op.settings.integer("state");
    return {.others = Flops::from_base(kPerNumber * static_cast<double>(numbers))};
  }
  OperatorFlops flops = flops_of_kernels(
      graph, op, [&](const Attention& attention) { return score_weight(model, attention); });
  if (op.part == LayerPart::kExpertsUp || op.part == LayerPart::kExpertsDown)
    flops.products = flops.products / static_cast<double>(model.experts) *
                     static_cast<double>(model.experts_per_token);
  return flops;
}

Flops flops_of_model(const Model& model, double samples, BackwardPass backward) {
  const FlopsSum flops(
      [&](const Graph& graph, const Operator& op) { return published_flops(model, graph, op); },
      backward);
  Flops of_sample;
  for (const CountedBlock& block : blocks_of(model)) {
    const auto inputs = block.is_trained_before ? block.graph.inputs : std::vector<TensorId>{};
    of_sample += static_cast<double>(block.times) * flops.of(block.graph, inputs);
  }
  return samples * of_sample;
}

}  // namespace

Flops product_flops(const Graph& graph) {
  return FlopsSum(executed_flops, BackwardPass::kNone).of(graph, {});
}

Flops step_flops(const Graph& graph) {
  return FlopsSum(executed_flops, BackwardPass::kFollows).of(graph, {});
}

std::int64_t parameter_count(const Model& model) {
  return parameters_of(model).all;
}

std::int64_t active_parameter_count(const Model& model) {
  const ParameterCount count = parameters_of(model);
  if (count.routed == 0) return count.all;
  return count.all - count.routed / model.experts * (model.experts - model.experts_per_token);
}

std::int64_t trained_parameter_count(const Model& model) {
  return parameters_of(model).trained;
}

Flops model_flops(const Model& model, double samples) {
  return flops_of_model(model, samples, BackwardPass::kFollows);
}

Flops forward_flops(const Model& model, double samples) {
  return flops_of_model(model, samples, BackwardPass::kNone);
}

}  // namespace foreshard
