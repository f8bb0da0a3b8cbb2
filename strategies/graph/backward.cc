#include "strategies/graph/backward.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/check.h"

#include "strategies/graph/operators/build.h"
#include "strategies/graph/operators/gradients.h"

namespace foreshard {
namespace {

bool has_gradient(const Tensor& tensor) {
  return tensor.dtype != DType::kInt8 && tensor.dtype != DType::kInt32 &&
         tensor.dtype != DType::kInt64;
}

// Whether the operator that made `gradient`, the latest to do so, sums over a factor.
bool contracts(const Graph& graph, TensorId gradient) {
  const auto made = std::ranges::find_if(
      graph.operators.rbegin(), graph.operators.rend(), [&](const Operator& op) {
        return std::ranges::find(op.outputs, gradient) != op.outputs.end();
      });
  if (made == graph.operators.rend()) return false;
  const Rule rule = rule_of(graph, *made);
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

class Backward {
 public:
  Backward(const Graph& forward, const BackwardOptions& options)
      : forward_(forward), options_(options) {
    graph_.name = forward_.name + ".backward";
    graph_.tensors = forward_.tensors;
    for (const Operator& op : forward_.operators)
      for (const TensorId id : op.inputs)
        if (op.kind == OperatorKind::kDefined && forward_[id].role == TensorRole::kParameter)
          ++uses_[id];
    for (const Operator& op : forward_.operators)
      for (const TensorId id : op.inputs) ++readers_[id];
  }

  // Tensors lie as the forward pass leaves them.
  void pin(const ShardedGraph& forward) {
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
      // A saved tensor lies as its producer left it. Partial ones are resolved before anything can
      // save them, so no backward operator reads one.
      if (graph_.tensors[i].role == TensorRole::kActivation || !graph_.tensors[i].pinned)
        graph_.tensors[i].pinned = forward.attributes[i];
      graph_.tensors[i].open.clear();
    }
  }

  // The forward operators come first.
  void prepend() {
    graph_.name = forward_.name + ".training";
    graph_.operators = forward_.operators;
    graph_.bodies = forward_.bodies;
    graph_.inputs = forward_.inputs;
    graph_.outputs = forward_.outputs;
  }

  /// \param complete  inputs that nothing flows back to get a gradient of zeroes.
  Graph run(bool complete = false) {
    for (const TensorId out : forward_.outputs) {
      if (forward_[out].role != TensorRole::kActivation || is_loss(out)) continue;
      if (has_gradient(forward_[out])) graph_.inputs.push_back(seed(out));
    }
    for (auto op = forward_.operators.rbegin(); op != forward_.operators.rend(); ++op) {
      for (const TensorId out : op->outputs) join_contractions(out);
      derive(*op);
    }
    for (const TensorId in : forward_.inputs) {
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
    }
    return std::move(graph_);
  }

  const Graph& forward() const { return forward_; }
  const Graph& graph() const { return graph_; }
  const BackwardOptions& options() const { return options_; }

  std::vector<TensorId> added(OperatorSpec spec, bool core_attention = false) {
    auto outputs = add_operator(graph_, std::move(spec));
    FORESHARD_CHECK(outputs.has_value());
    graph_.operators.back().core_attention = core_attention;
    return *std::move(outputs);
  }
  TensorId gradient_of(TensorId tensor) const {
    const auto it = gradient_of_.find(tensor);
    return it == gradient_of_.end() ? TensorId{} : it->second;
  }

 private:
  bool is_loss(TensorId tensor) const {
    return std::ranges::any_of(forward_.operators, [&](const Operator& op) {
      return op.kind == OperatorKind::kView && op.outputs.front() == tensor &&
             forward_[op.inputs.front()].dtype == DType::kFp32;
    });
  }

  TensorId seed(TensorId out) {
    Tensor gradient = forward_[out];
    gradient.name = "d." + gradient.name;
    return gradient_of_[out] = graph_.add(std::move(gradient));
  }

  // A summand of the gradient of a parameter that defined operators use; when all of them have had
  // their turn, the sum becomes the gradient. `fresh`: no other tensor's gradient is the same.
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
    if (known != gradient_of_.end())
      gradient = added({.type = "binary",
                        .name = "sum.d." + forward_[of].name,
                        .inputs = {known->second, gradient},
                        .settings = {{"operation", std::string("add")}}})
                     .front();
    gradient_of_[of] = gradient;
  }

  void name_after(TensorId of, TensorId gradient) {
    if (forward_.gradients_apart) graph_[gradient].name = "d." + forward_[of].name;
  }

  // Only what products make is added to a gradient of another type: vectors are no matter.
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

  Operator* maker_of(TensorId gradient) {
    const auto made =
        std::ranges::find_if(graph_.operators.rbegin(), graph_.operators.rend(),
                             [&](const Operator& op) { return op.outputs.front() == gradient; });
    return made == graph_.operators.rend() ? nullptr : &*made;
  }

  bool is_product(const Operator& op) const {
    std::vector<std::vector<std::int64_t>> shapes;
    for (const TensorId id : op.inputs) shapes.push_back(graph_[id].shape);
    for (const TensorId id : op.outputs) shapes.push_back(graph_[id].shape);
    return std::ranges::any_of(kernels_of(graph_, op, shapes), [](const Kernel& kernel) {
      return std::holds_alternative<Gemm>(kernel);
    });
  }

  TensorId new_gradient(TensorId of) {
    Tensor gradient = forward_[of];
    gradient.name = "d." + gradient.name;
    if (gradient.role == TensorRole::kParameter) {
      gradient.role = TensorRole::kParameterGradient;
      gradient.gradient_of = of;
      if (options_.fused_accumulation) gradient.dtype = DType::kFp32;
    } else {
      gradient.pinned.reset();
    }
    return graph_.add(std::move(gradient));
  }

  // `gradient` is one summand of the gradient of activation `of`. Of three or more, those that a
  // contraction makes (of queries, keys and values) are added up by themselves first: where its
  // factor is split they are summands, and their sum is reduced once, not each before it meets
  // values.
  void contribute(TensorId of, TensorId gradient) {
    constexpr int kFew = 2;
    add_to(readers_[of] > kFew && contracts(graph_, gradient) ? contracted_ : gradient_of_, of,
           gradient);
  }

  void join_contractions(TensorId of) {
    const auto contracted = contracted_.find(of);
    if (contracted == contracted_.end()) return;
    const TensorId gradient = contracted->second;
    contracted_.erase(contracted);
    add_to(gradient_of_, of, gradient);
  }

  void add_to(std::map<TensorId, TensorId>& sums, TensorId of, TensorId gradient) {
    const auto known = sums.find(of);
    if (known == sums.end()) {
      sums[of] = gradient;
      return;
    }
    known->second = added({.type = "binary",
                           .name = "sum.d." + forward_[of].name,
                           .inputs = {known->second, gradient},
                           .settings = {{"operation", std::string("add")}},
                           .output_names = {"d." + forward_[of].name}})
                        .front();
    if (forward_.gradients_apart) graph_.operators.back().rule.linearity = Linearity::kNone;
  }

  // A pass with the gradient of the first output, then `extra` tensors, as inputs.
  void pass(const Operator& op, PassKind kind, const std::string& equation,
            std::vector<TensorId> inputs, const std::vector<TensorId>& gradients_of,
            std::int32_t extent) {
    Operator back{.name = "d." + op.name,
                  .equation = equation,
                  .whole = op.whole,
                  .inputs = std::move(inputs),
                  .pass = kind,
                  .extent = extent,
                  .implementation = op.implementation,
                  .heads = op.heads,
                  .causal = op.causal,
                  .core_attention = op.core_attention};
    for (const TensorId of : gradients_of) back.outputs.push_back(new_gradient(of));
    graph_.operators.push_back(back);
    for (std::size_t i = 0; i < gradients_of.size(); ++i) {
      if (forward_[gradients_of[i]].role == TensorRole::kActivation)
        contribute(gradients_of[i], back.outputs[i]);
    }
  }

  // Right behind what makes the gradient.
  void accumulate(TensorId gradient) {
    const auto before = static_cast<std::ptrdiff_t>(graph_.operators.size());
    const Operator* made = maker_of(gradient);
    const auto behind = made == nullptr ? before : made - graph_.operators.data() + 1;
    const Tensor summand = graph_[gradient];
    const std::string to(name_of(options_.accumulator));
    if (summand.dtype != options_.accumulator && options_.casts) {
      gradient = added({.type = "cast",
                        .name = "cast." + summand.name,
                        .inputs = {gradient},
                        .settings = {{"to", to}}})
                     .front();
      // Each rank rounds what it has: gradients are reduced in their own type.
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
    std::rotate(graph_.operators.begin() + behind, graph_.operators.begin() + before,
                graph_.operators.end());
  }

  void derive(const Operator& op) {
    switch (op.kind) {
      case OperatorKind::kMatmul:
        return derive_matmul(op);
      case OperatorKind::kAttention:
        return derive_attention(op);
      case OperatorKind::kView:
        return derive_view(op);
      case OperatorKind::kPass:
        return derive_pass(op);
      case OperatorKind::kDefined:
        return derive_defined(op);
    }
  }

  void derive_matmul(const Operator& op) {
    const auto letters = operand_letters(op.equation);
    const TensorId dy = gradient_of_.at(op.outputs[0]);
    const TensorId a = op.inputs[0];
    const TensorId b = op.inputs[1];
    const auto product = [&](const std::string& suffix, const std::string& equation,
                             std::vector<TensorId> inputs, TensorId of) {
      const TensorId gradient = new_gradient(of);
      const bool weight = forward_[of].role == TensorRole::kParameter;
      graph_.operators.push_back({.name = "d." + op.name + suffix,
                                  .kind = OperatorKind::kMatmul,
                                  .equation = equation,
                                  .whole = op.whole,
                                  .inputs = std::move(inputs),
                                  .outputs = {gradient},
                                  .accumulates = weight && options_.fused_accumulation,
                                  .core_attention = op.core_attention});
      if (weight) {
        if (!options_.fused_accumulation) accumulate(gradient);
      } else {
        contribute(of, gradient);
      }
    };
    product(".data", letters[2] + "," + letters[1] + "->" + letters[0], {dy, b}, a);
    product(".weight", letters[0] + "," + letters[2] + "->" + letters[1], {a, dy}, b);
    if (!op.fused_bias.valid()) return;
    contribute_parameter(
        op.fused_bias,
        added({.type = "bias_gradient", .name = "d." + op.name + ".bias", .inputs = {dy}}).front(),
        true);
    finish_parameter(op.fused_bias);
  }

  void derive_attention(const Operator& op) {
    const TensorId dy = gradient_of_.at(op.outputs[0]);
    const TensorId gradient = new_gradient(op.inputs[0]);
    graph_.operators.push_back({.name = "d." + op.name,
                                .kind = OperatorKind::kAttention,
                                .equation = "bsa,bsa,bsa,bsa->bsa",
                                .whole = op.whole,
                                .inputs = {op.inputs[0], op.outputs[0], op.outputs[1], dy},
                                .outputs = {gradient},
                                .heads = op.heads,
                                .causal = op.causal,
                                .dropout = op.dropout,
                                .attention = op.attention,
                                .direction = Direction::kBackward,
                                .core_attention = op.core_attention});
    contribute(op.inputs[0], gradient);
  }

  void derive_view(const Operator& op) {
    // The loss's combination has no gradient of its own; a split of heads gives the pieces back.
    if (!gradient_of_.contains(op.outputs[0])) return;
    const auto letters = operand_letters(op.equation);
    std::string equation;
    std::vector<TensorId> inputs;
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      equation += (i == 0 ? "" : ",") + letters[op.inputs.size() + i];
      inputs.push_back(gradient_of_.at(op.outputs[i]));
    }
    const auto extent = static_cast<std::int32_t>(inputs.size());
    pass(op, PassKind::kTranspose, equation + "->" + letters[0], std::move(inputs), {op.inputs[0]},
         extent);
  }

  void derive_pass(const Operator& op);
  void derive_defined(const Operator& op);

  const Graph& forward_;
  BackwardOptions options_;
  Graph graph_;
  std::map<TensorId, int> readers_;           // of activations
  std::map<TensorId, TensorId> contracted_;   // sums of what contractions contributed, if apart
  std::map<TensorId, TensorId> gradient_of_;  // of activations; of parameters of defined operators
  std::map<TensorId, int> uses_;              // of parameters by defined operators not yet derived
  std::set<TensorId> multiplied_;             // parameters of whose gradients products make a part
  friend class OperatorGradients;
};

// What the gradient function of one defined operator sees.
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
                           op_.core_attention);
  }
  const Graph& body(std::size_t index) const override {
    return backward_.forward().bodies[static_cast<std::size_t>(op_.bodies[index])];
  }
  Graph backward_of(const Graph& body) const override {
    return Backward(body, backward_.options()).run(true);
  }
  void give(std::size_t index, TensorId gradient) override {
    const TensorId of = op_.inputs[index];
    FORESHARD_CHECK(tensor(of).shape == tensor(gradient).shape);
    const bool fresh =
        gradient.index() >= first_new_ && std::ranges::find(given_, gradient) == given_.end();
    given_.push_back(gradient);
    if (tensor(of).role == TensorRole::kParameter)
      return backward_.contribute_parameter(of, gradient, fresh);
    if (fresh) backward_.name_after(of, gradient);
    backward_.contribute(of, gradient);
  }

 private:
  Backward& backward_;
  const Operator& op_;
  std::size_t first_new_;
  std::vector<TensorId> given_;
};

void Backward::derive_defined(const Operator& op) {
  const OperatorDefinition* definition = find_operator(op.type);
  FORESHARD_CHECK(definition != nullptr);
  const bool flows =
      std::ranges::any_of(op.outputs, [&](TensorId out) { return gradient_of_.contains(out); });
  if (flows && definition->gradient != nullptr) {
    OperatorGradients gradients(*this, op);
    definition->gradient(gradients);
  }
  for (const TensorId id : op.inputs) {
    const auto use = uses_.find(id);
    if (use != uses_.end() && --use->second == 0) finish_parameter(id);
  }
}

void Backward::derive_pass(const Operator& op) {
  const auto letters = operand_letters(op.equation);
  const TensorId x = op.inputs[0];
  const std::string& lx = letters[0];
  if (op.pass == PassKind::kCrossEntropyForward) {
    // d logits = (softmax - one hot) / tokens: from the saved exponentials and the statistics that
    // the ranks found together.
    const auto combine = std::ranges::find_if(forward_.operators, [&](const Operator& other) {
      return !other.inputs.empty() && other.inputs[0] == op.outputs[0];
    });
    FORESHARD_CHECK(combine != forward_.operators.end());
    Operator back{.name = "d." + op.name,
                  .equation = letters[4] + "," + letters[3] + "," + letters[2] + "->" + lx,
                  .inputs = {op.outputs[1], combine->outputs[0], op.inputs[2]},
                  .outputs = {new_gradient(x)},
                  .pass = PassKind::kCrossEntropyBackward,
                  .implementation = op.implementation};
    graph_.operators.push_back(back);
    return contribute(x, back.outputs[0]);
  }
  const TensorId dy = gradient_of_.at(op.outputs[0]);
  const std::string& ly = letters[op.inputs.size()];
  switch (op.pass) {
    case PassKind::kTranspose:
      return pass(op, PassKind::kTranspose, ly + "->" + lx, {dy}, {x}, 0);
    case PassKind::kEmbeddingForward:
      return pass(op, PassKind::kEmbeddingBackward, ly + "," + lx + "->" + letters[1], {dy, x},
                  {op.inputs[1]}, 0);
    default:
      FORESHARD_CHECK(false && "a forward pass without a gradient");
  }
}

}  // namespace

Graph backward_graph(const ShardedGraph& forward, const BackwardOptions& options) {
  Backward backward(*forward.graph, options);
  backward.pin(forward);
  return backward.run();
}

Graph training_graph(const Graph& forward, const BackwardOptions& options) {
  Backward backward(forward, options);
  backward.prepend();
  return backward.run();
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
      // A view of the loss partials is their reduced copy: storage of its own.
      if (graph[id].dtype == viewed.dtype &&
          (op.kind == OperatorKind::kDefined || graph[id].dtype != DType::kFp32))
        storage[id.index()] = storage[op.inputs[0].index()];
    }
  }
  return storage;
}

TensorId storage_of(const Graph& graph, TensorId id) {
  return storages_of(graph)[id.index()];
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
