#include "strategies/graph/backward.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"

#include "strategies/graph/operators/build.h"
#include "strategies/graph/operators/definition.h"

// The forward operators are visited in reverse order. Each one's gradient function
// (OperatorDefinition::gradient in operators/) adds operators to the backward graph through the
// interface Gradients; the summands of each tensor's gradient are added up here.
// Callers: lowering (program/lower/block.cc, units.cc) for a sharded forward graph, and the search
// for annotations (sim/search/graph). Neither a sum nor an index has a physical unit here.

namespace foreshard {
namespace {

// Integers have none.
bool has_gradient(const Tensor& tensor) {
  return tensor.dtype != DType::kInt8 && tensor.dtype != DType::kInt32 &&
         tensor.dtype != DType::kInt64;
}

// Whether a parameter of the graph or of its bodies is trained.
bool has_trained(const Graph& graph) {
  return std::ranges::any_of(graph.tensors, learns) ||
         std::ranges::any_of(graph.bodies, has_trained);
}

// Whether the last operator with the result `gradient` sums over a factor of its rule (an index
// that its inputs have and its result lacks), as a matrix product does.
bool contracts(const Graph& graph, TensorId gradient) {
  const auto made = std::ranges::find_if(
      graph.operators.rbegin(), graph.operators.rend(), [&](const Operator& op) {
        return std::ranges::find(op.outputs, gradient) != op.outputs.end();
      });
  if (made == graph.operators.rend()) return false;
  const Rule& rule = made->rule;
  const auto has = [&](std::size_t operand, std::size_t factor) {
    return std::ranges::any_of(rule.operands[operand], [&](const auto& dimension) {
      return std::ranges::find(dimension, static_cast<std::int32_t>(factor)) != dimension.end();
    });
  };
  const auto output =
      rule.inputs +
      static_cast<std::size_t>(std::ranges::find(made->outputs, gradient) - made->outputs.begin());
  for (std::size_t factor = 0; factor < rule.factors.size(); ++factor) {
    if (has(output, factor)) continue;
    for (std::size_t input = 0; input < rule.inputs; ++input)
      if (has(input, factor)) return true;
  }
  return false;
}

// Builds one backward graph. The forward tensors come first in it, with their ids.
// Errors of operators are bugs here: each FORESHARD_CHECK ends the process.
class Backward {
 public:
  Backward(const Graph& forward, const BackwardOptions& options)
      : forward_(forward), options_(options) {
    graph_.name = forward_.name + ".backward";
    graph_.tensors = forward_.tensors;
    for (const Operator& op : forward_.operators)
      for (const TensorId id : op.inputs)
        if (forward_[id].role == TensorRole::kParameter) ++uses_[id];
    for (const Operator& op : forward_.operators)
      for (const TensorId id : op.inputs) {
        ++readers_[id];
        if (op.part == LayerPart::kAdapters) adapted_.insert(id);
      }
    find_wanted();
  }

  // Pins the forward tensors as the forward pass leaves them.
  void pin(const ShardedGraph& forward) {
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
      // A saved tensor lies as its producer left it. Partial ones are resolved before anything can
      // save them, so no backward operator reads one.
      graph_.tensors[i].pinned = forward.attributes[i];
      graph_.tensors[i].open.clear();  // Propagation must not split it further.
    }
  }

  // Puts the forward operators before the backward operators.
  void prepend() {
    graph_.name = forward_.name + ".training";
    graph_.operators = forward_.operators;
    graph_.bodies = forward_.bodies;
    graph_.inputs = forward_.inputs;
    graph_.outputs = forward_.outputs;
  }

  /// Builds the graph; the object is spent afterwards.
  /// \param complete  an input to which no operator contributes gets a gradient of zeros; otherwise
  ///     it has none.
  Graph run(bool complete = false) {
    for (const TensorId out : forward_.outputs) {
      if (forward_[out].role != TensorRole::kActivation || is_loss(out)) continue;
      if (!has_gradient(forward_[out]) || !wants(out)) continue;
      ends_.outputs[out] = seed(out);
      graph_.inputs.push_back(ends_.outputs[out]);
    }
    for (auto op = forward_.operators.rbegin(); op != forward_.operators.rend(); ++op) {
      for (const TensorId out : op->outputs) join_contractions(out);
      derive(*op);
    }
    for (const TensorId in : forward_.inputs) {
      if (!wants(in)) continue;
      join_contractions(in);
      if (!gradient_of_.contains(in)) {
        if (!complete || !has_gradient(forward_[in])) continue;
        contribute(in, added({.type = "unary",
                              .name = "d." + forward_[in].name,
                              .inputs = {in},
                              .settings = {{"operation", std::string("scale")}, {"value", 0.0}}})
                           .front());
      }
      const TensorId gradient = gradient_of_[in];
      graph_[gradient].pinned = forward_[in].pinned;
      graph_.outputs.push_back(gradient);
      ends_.inputs[in] = gradient;
    }
    if (!wanted_.empty()) prune(graph_);
    rematerialize();
    return std::move(graph_);
  }

  const GradientsOfEnds& ends() const { return ends_; }
  const Graph& forward() const { return forward_; }
  const Graph& graph() const { return graph_; }
  const BackwardOptions& options() const { return options_; }

  /// Adds an operator and returns its results.
  /// \param of  the forward operator whose gradient it computes: its Operator::part and
  ///     Operator::capture (by a CUDA graph) are taken over. Null if it serves several forward
  ///     operators, as sums do: then it has no part, and the capture of the operator before it.
  std::vector<TensorId> added(OperatorSpec spec, const Operator* of = nullptr) {
    auto outputs = add_operator(graph_, std::move(spec));
    FORESHARD_CHECK(outputs.has_value());
    const std::size_t count = graph_.operators.size();
    if (of != nullptr) {
      graph_.operators.back().part = of->part;
      graph_.operators.back().capture = of->capture;
    } else if (count > 1) {
      graph_.operators.back().capture = graph_.operators[count - 2].capture;
    }
    return *std::move(outputs);
  }
  /// Gives `gradient` the annotation of the forward tensor `of`, if there is one.
  void lay_as(TensorId of, TensorId gradient) { graph_[gradient].pinned = forward_[of].pinned; }
  /// Whether the tensor's gradient is needed: something that is trained depends on it.
  bool wants(TensorId tensor) const { return wanted_.empty() || wanted_[tensor.index()]; }
  /// The gradient so far; an invalid id if there is none.
  TensorId gradient_of(TensorId tensor) const {
    const auto it = gradient_of_.find(tensor);
    return it == gradient_of_.end() ? TensorId{} : it->second;
  }

 private:
  // Fills wanted_; leaves it empty if gradients of all tensors are wanted.
  void find_wanted() {
    const bool freezes = std::ranges::any_of(forward_.tensors, &Tensor::frozen);
    if (!freezes && options_.trained_before) return;
    const auto reached =
        trained(forward_, options_.trained_before ? forward_.inputs : std::vector<TensorId>{});
    for (std::size_t t = 0; t < forward_.tensors.size(); ++t)
      wanted_.push_back(learns(forward_.tensors[t]) ||
                        reached.contains(TensorId{static_cast<std::int64_t>(t)}));
  }

  // Recomputes tensors for the backward operators instead of saving them: each reader of a weight
  // that the forward pass dequantized dequantizes it again, and each reader of a tensor whose
  // quantized copy is saved (a `quantize` with the setting "kept") casts that copy back.
  // Source: bitsandbytes-foundation/bitsandbytes, bitsandbytes/autograd/_functions.py (MatMul4Bit);
  // NVIDIA/Megatron-LM, megatron/core/fusions/fused_bias_swiglu.py (fp8_input_store).
  void rematerialize() {
    std::map<TensorId, OperatorSpec> made;  // forward tensor -> the operator that recomputes it
    for (const Operator& op : forward_.operators) {
      if (op.type == "dequantize")
        made[op.outputs.front()] = {.type = op.type, .inputs = op.inputs, .settings = op.settings};
      if (op.type == "quantize" && op.settings.flag("kept")) {
        const TensorId wide = op.inputs.front();
        made[wide] = {.type = "cast",
                      .inputs = op.outputs,
                      .settings = {{"to", std::string(name_of(forward_[wide].dtype))}}};
      }
    }
    if (made.empty()) return;
    std::vector<Operator> operators = std::exchange(graph_.operators, {});
    for (Operator& op : operators) {
      const bool is_forward = op.outputs.front().index() < forward_.tensors.size();
      for (TensorId& id : op.inputs) {
        const auto known = made.find(id);
        if (is_forward || known == made.end()) continue;
        OperatorSpec again = known->second;
        again.name = again.type == "cast" ? graph_[id].name + ".again" : "d." + op.name + ".weight";
        Tensor copy = graph_[id];
        copy.name = again.name;
        id = added(std::move(again), &op).front();
        graph_[id] = std::move(copy);
      }
      graph_.operators.push_back(std::move(op));
    }
  }

  bool is_loss(TensorId tensor) const {
    return std::ranges::any_of(forward_.operators, [&](const Operator& op) {
      return op.outputs.front() == tensor && find_operator(op.type)->loss;
    });
  }

  // The gradient of the forward output `out`: an input of the backward graph.
  TensorId seed(TensorId out) {
    Tensor gradient = forward_[out];
    gradient.name = "d." + gradient.name;
    gradient.carried = false;
    return gradient_of_[out] = graph_.add(std::move(gradient));
  }

  // Adds a summand to the gradient of parameter `of`. After all operators that use the parameter,
  // the sum becomes its gradient (finish_parameter). `fresh`: `gradient` is no other tensor's
  // gradient; else a copy is added. Where contributions are reduced one by one
  // (Graph::gradients_apart), each of several summands has the parameter's annotation.
  void contribute_parameter(TensorId of, TensorId gradient, bool fresh) {
    if (!fresh)
      gradient = added({.type = "unary",
                        .name = graph_[gradient].name + "." + forward_[of].name,
                        .inputs = {gradient},
                        .settings = {{"operation", std::string("identity")}}})
                     .front();
    const Operator* made = maker_of(gradient);
    if (made != nullptr && is_product(*made)) multiplied_.insert(of);
    const auto known = gradient_of_.find(of);
    if (known != gradient_of_.end() && forward_.gradients_apart)
      for (const TensorId summand : {known->second, gradient}) {
        graph_[summand].role = TensorRole::kParameterGradient;
        graph_[summand].pinned = graph_[of].pinned;
      }
    if (known != gradient_of_.end())
      gradient = added({.type = "binary",
                        .name = "sum.d." + forward_[of].name,
                        .inputs = {known->second, gradient},
                        .settings = {{"operation", std::string("add")}}})
                     .front();
    gradient_of_[of] = gradient;
  }

  // Graphs of transformers (Graph::gradients_apart) name gradients after the tensor.
  void name_after(TensorId of, TensorId gradient) {
    if (forward_.gradients_apart) graph_[gradient].name = "d." + forward_[of].name;
  }

  // Makes the sum of a parameter's summands its gradient; a parameter without summands has none.
  // Without fused accumulation, a separate pass accumulates the gradient if a product contributes
  // to it. Other gradients (of norms, biases) are small: their accumulation costs nothing here.
  void finish_parameter(TensorId parameter) {
    const auto known = gradient_of_.find(parameter);
    if (known == gradient_of_.end()) return;
    Tensor& gradient = graph_[known->second];
    gradient.name = "d." + forward_[parameter].name;
    gradient.role = TensorRole::kParameterGradient;
    gradient.gradient_of = parameter;
    gradient.pinned = graph_[parameter].pinned;
    gradient.open = graph_[parameter].open;
    if (!options_.fused_accumulation) {
      if (multiplied_.contains(parameter)) accumulate(known->second);
      return;
    }
    gradient.dtype = DType::kFp32;
    Operator* made = maker_of(known->second);
    if (made != nullptr && is_product(*made)) made->accumulates = true;
  }

  // The last operator whose first result is `gradient`; null for an input of the graph.
  Operator* maker_of(TensorId gradient) {
    const auto made =
        std::ranges::find_if(graph_.operators.rbegin(), graph_.operators.rend(),
                             [&](const Operator& op) { return op.outputs.front() == gradient; });
    return made == graph_.operators.rend() ? nullptr : &*made;
  }

  // Whether one of the operator's kernels is a matrix product.
  bool is_product(const Operator& op) const {
    std::vector<std::vector<std::int64_t>> shapes;
    for (const TensorId id : op.inputs) shapes.push_back(graph_[id].shape);
    for (const TensorId id : op.outputs) shapes.push_back(graph_[id].shape);
    return std::ranges::any_of(kernels_of(graph_, op, shapes), [](const Kernel& kernel) {
      return std::holds_alternative<Gemm>(kernel);
    });
  }

  // Adds `gradient` to the gradient of activation `of`. Example: queries, keys, values and the
  // residual stream read one tensor. With tensor parallelism the contributions of the three
  // products are partial sums, that of the stream is complete. So contributions of contractions are
  // added up by themselves first, and their sum is reduced once, before the others are added. This
  // holds for an activation with more than kFew readers, and for a linear layer and its adapter.
  // Source: NVIDIA/TransformerEngine, transformer_engine/pytorch/module/layernorm_linear.py
  // (return_layernorm_output_gathered). Not modelled: without sequence parallelism each
  // contribution is reduced by itself.
  void contribute(TensorId of, TensorId gradient) {
    constexpr int kFew = 2;  // readers
    const bool joins = readers_[of] > kFew || adapted_.contains(of);
    add_to(joins && contracts(graph_, gradient) ? contracted_ : gradient_of_, of, gradient);
  }

  // Adds the sum of the contractions' contributions, if there is one, to the gradient of `of`.
  void join_contractions(TensorId of) {
    const auto contracted = contracted_.find(of);
    if (contracted == contracted_.end()) return;
    const TensorId gradient = contracted->second;
    contracted_.erase(contracted);
    add_to(gradient_of_, of, gradient);
  }

  // Adds `gradient` to the sum of `of` in `sums` (contracted_ or gradient_of_).
  void add_to(std::map<TensorId, TensorId>& sums, TensorId of, TensorId gradient) {
    const auto known = sums.find(of);
    if (known == sums.end()) {
      sums[of] = gradient;
      return;
    }
    // The types can differ: products give the gradient of an 8-bit tensor in 16 bits or more. The
    // sum has the wider type.
    if (size_of(graph_[gradient].dtype) < size_of(graph_[known->second].dtype))
      gradient = widened(gradient, graph_[known->second].dtype);
    else if (graph_[gradient].dtype != graph_[known->second].dtype)
      known->second = widened(known->second, graph_[gradient].dtype);
    known->second = added({.type = "binary",
                           .name = "sum.d." + forward_[of].name,
                           .inputs = {known->second, gradient},
                           .settings = {{"operation", std::string("add")}},
                           .output_names = {"d." + forward_[of].name}})
                        .front();
    // kNone: the summands are reduced before they are added, each by itself.
    const bool joins = &sums == &contracted_ && adapted_.contains(of);
    if (forward_.gradients_apart && !joins)
      graph_.operators.back().rule.linearity = Linearity::kNone;
  }

  TensorId widened(TensorId gradient, DType to) {
    return added({.type = "cast",
                  .name = "cast." + graph_[gradient].name,
                  .inputs = {gradient},
                  .settings = {{"to", std::string(name_of(to))}}})
        .front();
  }

  // Accumulates the gradient in its buffer, right after the operator that makes it.
  void accumulate(TensorId gradient) {
    const auto old_count = static_cast<std::ptrdiff_t>(graph_.operators.size());
    const Operator* made = maker_of(gradient);
    const auto insert_at = made == nullptr ? old_count : made - graph_.operators.data() + 1;
    const Tensor summand = graph_[gradient];
    const std::string to(name_of(options_.accumulator));
    if (summand.dtype != options_.accumulator && options_.casts) {
      gradient = added({.type = "cast",
                        .name = "cast." + summand.name,
                        .inputs = {gradient},
                        .settings = {{"to", to}}})
                     .front();
      // Each rank casts its own summand: a partial gradient stays partial (kJoint) and is reduced
      // later.
      graph_.operators.back().rule.linearity = Linearity::kJoint;
    }
    const TensorId sum = added({.type = "gradient_accumulate",
                                .name = "accumulate." + summand.name,
                                .inputs = {gradient},
                                .settings = {{"to", to}},
                                .output_names = {"main." + summand.name}})
                             .front();
    graph_[sum].role = summand.role;
    graph_[sum].gradient_of = summand.gradient_of;
    graph_[sum].pinned = summand.pinned;
    graph_[sum].open = summand.open;
    std::rotate(graph_.operators.begin() + insert_at, graph_.operators.begin() + old_count,
                graph_.operators.end());
  }

  // Adds the gradient of one forward operator, if a gradient of a result or a loss flows back into
  // it and an input's gradient is needed; then finishes the parameters that it was the last to use.
  void derive(const Operator& op);

  const Graph& forward_;
  BackwardOptions options_;
  Graph graph_;
  GradientsOfEnds ends_;
  std::vector<bool> wanted_;         // tensor -> whether its gradient is wanted; empty: all
  std::map<TensorId, int> readers_;  // tensor -> operator inputs that it is
  std::set<TensorId> adapted_;       // inputs of adapters
  // activation -> sum of the contractions' contributions so far, not yet added to gradient_of_
  std::map<TensorId, TensorId> contracted_;
  std::map<TensorId, TensorId> gradient_of_;  // activation or parameter -> its gradient so far
  // parameter -> operator inputs that it is, of operators that are not yet derived
  std::map<TensorId, int> uses_;
  std::set<TensorId> multiplied_;  // parameters whose gradient has a contribution of a product
  friend class OperatorGradients;
};

// The interface of one operator's gradient function to the backward graph.
class OperatorGradients final : public Gradients {
 public:
  OperatorGradients(Backward& backward, const Operator& op)
      : backward_(backward), op_(op), first_new_(backward.graph().tensors.size()) {}

  const Operator& op() const override { return op_; }
  const Tensor& tensor(TensorId id) const override { return backward_.graph()[id]; }
  TensorId of_output(std::size_t index) const override {
    return backward_.gradient_of(op_.outputs[index]);
  }
  std::vector<TensorId> add(std::string_view type, std::string_view part,
                            std::vector<TensorId> inputs, Settings settings) override {
    return add_with(type, part, std::move(inputs), std::move(settings), {});
  }
  std::vector<TensorId> add_with(std::string_view type, std::string_view part,
                                 std::vector<TensorId> inputs, Settings settings,
                                 std::vector<Graph> bodies) override {
    const std::string name = "d." + op_.name + (part.empty() ? "" : ".") + std::string(part);
    return backward_.added({.type = std::string(type),
                            .name = name,
                            .inputs = std::move(inputs),
                            .settings = std::move(settings),
                            .bodies = std::move(bodies)},
                           &op_);
  }
  const Graph& body(std::size_t index) const override {
    return backward_.forward().bodies[static_cast<std::size_t>(op_.bodies[index])];
  }
  Graph backward_of(const Graph& body) const override {
    BackwardOptions options = backward_.options();
    options.trained_before = true;
    return Backward(body, options).run(true);
  }
  bool wants(std::size_t index) const override {
    return Gradients::wants(index) && backward_.wants(op_.inputs[index]);
  }
  void give(std::size_t index, TensorId gradient) override {
    const TensorId of = op_.inputs[index];
    if (!backward_.wants(of)) return;
    FORESHARD_CHECK(tensor(of).shape == tensor(gradient).shape);
    const bool fresh =
        gradient.index() >= first_new_ && std::ranges::find(given_, gradient) == given_.end();
    given_.push_back(gradient);
    if (tensor(of).role == TensorRole::kParameter)
      return backward_.contribute_parameter(of, gradient, fresh);
    if (fresh) backward_.name_after(of, gradient);
    // A view computes nothing: the gradient of its input gets the input's annotation.
    if (fresh && find_operator(op_.type)->view) backward_.lay_as(of, gradient);
    backward_.contribute(of, gradient);
  }

 private:
  Backward& backward_;
  const Operator& op_;
  std::size_t first_new_;
  std::vector<TensorId> given_;
};

void Backward::derive(const Operator& op) {
  const OperatorDefinition* definition = find_operator(op.type);
  FORESHARD_CHECK(definition != nullptr);
  const bool flows = definition->loss || std::ranges::any_of(op.outputs, [&](TensorId out) {
                       return gradient_of_.contains(out);
                     });
  const bool is_wanted = std::ranges::any_of(op.inputs, [&](TensorId in) { return wants(in); });
  if (flows && is_wanted && definition->gradient != nullptr) {
    OperatorGradients gradients(*this, op);
    definition->gradient(gradients);
  }
  for (const TensorId id : op.inputs) {
    const auto use = uses_.find(id);
    if (use != uses_.end() && --use->second == 0) finish_parameter(id);
  }
}

}  // namespace

Graph backward_graph(const ShardedGraph& forward, const BackwardOptions& options,
                     GradientsOfEnds* ends) {
  Backward backward(*forward.graph, options);
  backward.pin(forward);
  Graph graph = backward.run();
  if (ends != nullptr) *ends = backward.ends();
  return graph;
}

Graph training_graph(const Graph& forward, const BackwardOptions& options) {
  Backward backward(forward, options);
  backward.prepend();
  return backward.run();
}

// Whether the operator writes into a parameter: it stays although nothing reads its result.
static bool updates_parameter(const Graph& graph, const Operator& op) {
  return find_operator(op.type)->in_place &&
         graph[op.inputs.front()].role == TensorRole::kParameter;
}

void prune(Graph& graph) {
  std::vector<bool> read(graph.tensors.size());
  for (const TensorId id : graph.outputs) read[id.index()] = true;
  std::vector<Operator> kept;
  for (auto op = graph.operators.rbegin(); op != graph.operators.rend(); ++op) {
    const bool wanted =
        !op->bodies.empty() || updates_parameter(graph, *op) ||
        std::ranges::any_of(op->outputs, [&](TensorId id) {
          return read[id.index()] || graph[id].role == TensorRole::kParameterGradient;
        });
    if (!wanted) continue;
    for (const TensorId id : op->inputs) read[id.index()] = true;
    kept.push_back(std::move(*op));
  }
  std::ranges::reverse(kept);
  graph.operators = std::move(kept);
}

std::set<TensorId> trained(const Graph& graph, const std::vector<TensorId>& inputs) {
  std::set<TensorId> found(inputs.begin(), inputs.end());
  for (const Operator& op : graph.operators) {
    const bool reaches =
        std::ranges::any_of(op.inputs,
                            [&](TensorId id) { return found.contains(id) || learns(graph[id]); }) ||
        std::ranges::any_of(op.bodies, [&](std::int32_t body) {
          return has_trained(graph.bodies[static_cast<std::size_t>(body)]);
        });
    if (reaches) found.insert(op.outputs.begin(), op.outputs.end());
  }
  return found;
}

std::vector<bool> weight_gradient_operators(const Graph& backward) {
  // tensor -> whether an output of the graph (the gradient of an input) depends on it
  std::vector<bool> reaches_output(backward.tensors.size());
  for (const TensorId id : backward.outputs) reaches_output[id.index()] = true;
  std::vector<bool> weights(backward.operators.size());
  for (std::size_t i = backward.operators.size(); i-- > 0;) {
    const Operator& op = backward.operators[i];
    weights[i] =
        std::ranges::none_of(op.outputs, [&](TensorId id) { return reaches_output[id.index()]; });
    if (weights[i]) continue;
    for (const TensorId id : op.inputs) reaches_output[id.index()] = true;
  }
  return weights;
}

bool can_split(const Graph& backward) {
  const std::vector<bool> weights = weight_gradient_operators(backward);
  return backward.bodies.empty() && std::ranges::find(weights, true) != weights.end() &&
         std::ranges::find(weights, false) != weights.end();
}

std::vector<TensorId> storages_of(const Graph& graph) {
  std::vector<TensorId> storage;
  storage.reserve(graph.tensors.size());
  for (std::size_t t = 0; t < graph.tensors.size(); ++t)
    storage.emplace_back(static_cast<std::int64_t>(t));
  for (const Operator& op : graph.operators) {
    if (op.inputs.empty() || !is_view(op)) continue;
    const Tensor& viewed = graph[op.inputs[0]];
    for (const TensorId id : op.outputs) {
      // In graphs that the transformer builder makes (gradients_apart), a view in fp32 counts as a
      // copy. This is right for the loss's statistics, a reduced copy, and too much for the heads
      // of an fp32 projection, a real view.
      const bool copied = graph.gradients_apart && graph[id].dtype == DType::kFp32;
      if (graph[id].dtype == viewed.dtype && !copied)
        storage[id.index()] = storage[op.inputs[0].index()];
    }
  }
  return storage;
}

std::vector<TensorId> saved_tensors(const Graph& forward, const Graph& backward) {
  const auto storage = storages_of(forward);
  std::set<TensorId> saved;
  for (const Operator& op : backward.operators) {
    for (const TensorId id : op.inputs) {
      if (id.index() < storage.size() && forward[id].role == TensorRole::kActivation)
        saved.insert(storage[id.index()]);
    }
  }
  return {saved.begin(), saved.end()};
}

}  // namespace foreshard
