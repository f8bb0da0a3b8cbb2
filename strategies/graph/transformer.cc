#include "strategies/graph/transformer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "base/check.h"

#include "strategies/graph/mesh_axes.h"
#include "strategies/graph/operators/build.h"

namespace foreshard {
namespace {

constexpr double kDropoutRate = 0.1;  // any rate costs the same

bool eager(OtherKernels kernels) {
  return kernels == OtherKernels::kEager;
}
std::string name_of_kernels(NormKernels kernels) {
  return kernels == NormKernels::kEager            ? "eager"
         : kernels == NormKernels::kRecomputedFp32 ? "recomputed-fp32"
                                                   : "fused";
}
std::string name_of_kernels(LossKernels kernels) {
  return kernels == LossKernels::kEager        ? "eager"
         : kernels == LossKernels::kRecomputed ? "recomputed"
                                               : "fused";
}

// Adds tensors and operators of one block. Dimensions in attributes are given by the axes.
class BlockBuilder {
 public:
  BlockBuilder(std::string name, const Model& model, const TransformerOptions& options)
      : model_(model),
        options_(options),
        tensor_axis_(axis_of(options.mesh, "tensor")),
        batch_axes_(sample_axes(options.mesh)),
        context_axes_(context_axes(options.mesh)) {
    // The last cuts finest: what goes to the ranks of other experts is a part of the rank's own.
    std::stable_partition(batch_axes_.begin(), batch_axes_.end(),
                          [&](Axis axis) { return !divides_experts(axis); });
    graph_.name = std::move(name);
    graph_.gradients_apart = true;
  }

  const std::vector<Axis> kWhole{};
  std::vector<Axis> tensor() const { return {tensor_axis_}; }
  const std::vector<Axis>& batch() const { return batch_axes_; }
  /// Over which sequences are cut everywhere.
  const std::vector<Axis>& context() const { return context_axes_; }
  /// Over which they are cut between the tensor-parallel parts.
  std::vector<Axis> sequence() const {
    std::vector<Axis> axes = context();
    if (options_.sequence_parallel) axes.push_back(tensor_axis_);
    return axes;
  }

  TensorId activation(const std::string& name, std::vector<std::int64_t> shape) {
    return graph_.add({.name = name, .dtype = options_.dtype, .shape = std::move(shape)});
  }
  TensorId typed(const std::string& name, std::vector<std::int64_t> shape, DType dtype) {
    return graph_.add({.name = name, .dtype = dtype, .shape = std::move(shape)});
  }
  /// The residual stream between blocks.
  TensorId boundary(const std::string& name) {
    return at_boundary(activation(name, tokens(model_.hidden)));
  }
  TensorId at_boundary(TensorId id) {
    graph_[id].pinned = Attribute{.dims = {batch(), sequence(), kWhole}, .partial = {}};
    return id;
  }
  TensorId parameter(const std::string& name, std::vector<std::int64_t> shape,
                     std::vector<std::vector<Axis>> dims) {
    return graph_.add({.name = name,
                       .dtype = options_.dtype,
                       .shape = std::move(shape),
                       .role = TensorRole::kParameter,
                       .pinned = Attribute{.dims = std::move(dims), .partial = {}}});
  }
  std::vector<std::int64_t> tokens(std::int64_t width) const {
    return {options_.batch, model_.sequence, width};
  }

  std::vector<TensorId> all_added(OperatorSpec spec) {
    auto results = add_operator(graph_, std::move(spec));
    FORESHARD_CHECK(results.has_value());
    graph_.operators.back().core_attention = core_attention_;
    return *std::move(results);
  }
  TensorId added(OperatorSpec spec) { return all_added(std::move(spec)).front(); }

  TensorId matmul(const std::string& name, TensorId x, std::int64_t in, std::int64_t out,
                  std::vector<std::vector<Axis>> dims) {
    return product({.type = "matmul",
                    .name = name,
                    .inputs = {x, parameter(name + ".weight", {in, out}, std::move(dims))}});
  }
  /// Of activations and a parameter.
  TensorId product(OperatorSpec spec) {
    if (quantization_ == Quantization::kNone) return added(std::move(spec));
    spec.inputs.front() = quantized(spec.inputs.front());
    spec.settings.set("to", std::string(name_of(options_.dtype)));
    spec.settings.set("recipe", std::string(yaml::name_of(quantization_)));
    return added(std::move(spec));
  }
  /// From here on, products are quantized as the options say, or not.
  void quantize(bool on = true) {
    quantization_ = on ? options_.quantization : Quantization::kNone;
  }
  /// For the products that read `x`: once for all.
  TensorId quantized(TensorId x) {
    const auto [known, is_new] = quantized_.try_emplace(x);
    if (is_new)
      known->second =
          added({.type = "quantize",
                 .name = graph_[x].name + "." + std::string(yaml::name_of(quantization_)),
                 .inputs = {x},
                 .settings = {{"recipe", std::string(yaml::name_of(quantization_))}}});
    return known->second;
  }

  /// `output` names the result if it is not named after the norm.
  TensorId norm(const std::string& name, TensorId x, const std::string& output = {}) {
    std::vector<TensorId> inputs{x};
    for (const bool shift : {false, true})
      if (shift ? has_shift(model_.norm) : has_scale(model_.norm))
        inputs.push_back(
            parameter(name + (shift ? ".bias" : ".weight"), {model_.hidden}, {kWhole}));
    return added({.type = model_.norm == Norm::kRmsNorm ? "rms_norm" : "layer_norm",
                  .name = name,
                  .inputs = std::move(inputs),
                  .settings = {{"kernels", name_of_kernels(options_.pointwise.norm)}},
                  .output_names = {output.empty() ? name : output}});
  }

  /// The norms of queries and keys in a packed projection: one operator for both.
  TensorId qk_norm(TensorId qkv);

  TensorId sum(const std::string& name, TensorId a, TensorId b, const std::string& output = {}) {
    return added({.type = "binary",
                  .name = name,
                  .inputs = {a, b},
                  .settings = {{"operation", std::string("add")}},
                  .output_names = {output.empty() ? name : output}});
  }

  /// Adds the residual to a branch, after the branch's bias, norm and dropout where the model has
  /// them. `output` names the result if it is not named after the addition.
  /// \pre if `biased`, the last operator is the matmul that made `branch`.
  TensorId join(const std::string& name, TensorId branch, bool biased, TensorId residual,
                const std::string& output = {}) {
    if (model_.norm_places != NormPlaces::kBefore) {
      if (std::exchange(biased, false)) fused_bias(name, branch, model_.hidden, kWhole);
      branch = at_boundary(norm(name + "_norm", branch));
    }
    if (!model_.dropout) {
      if (biased) fused_bias(name, branch, model_.hidden, kWhole);
      return at_boundary(sum(name, branch, residual, output));
    }
    std::vector<TensorId> inputs{branch, residual};
    if (biased) inputs.push_back(parameter(name + ".bias", {model_.hidden}, {kWhole}));
    return at_boundary(added({.type = "bias_dropout_add",
                              .name = name,
                              .inputs = std::move(inputs),
                              .settings = {{"rate", kDropoutRate}},
                              .output_names = {output.empty() ? name : output, name + ".mask"}}));
  }

  /// Adds a parameter that a matmul's epilogue applies: it costs nothing forward.
  void fused_bias(const std::string& name, TensorId y, std::int64_t width, std::vector<Axis> axes) {
    const TensorId bias = parameter(name + ".bias", {width}, {std::move(axes)});
    Operator& producer = graph_.operators.back();
    FORESHARD_CHECK(producer.outputs.front() == y);
    producer.inputs.push_back(bias);
    const auto inferred = infer_operator(graph_, {.type = producer.type,
                                                  .name = producer.name,
                                                  .inputs = producer.inputs,
                                                  .settings = producer.settings});
    FORESHARD_CHECK(inferred.has_value());
    producer.rule = inferred->rule;
  }

  TensorId reshaped(const std::string& name, TensorId of, std::vector<std::int64_t> shape) {
    return added({.type = "reshape", .name = name, .inputs = {of}, .settings = {{"shape", shape}}});
  }
  /// `of` where it is to lie as `to` says: the conversion is communication.
  TensorId moved(const std::string& name, TensorId of, std::vector<std::vector<Axis>> to) {
    const TensorId copy = reshaped(name, of, graph_[of].shape);
    graph_[copy].pinned = Attribute{.dims = std::move(to), .partial = {}};
    return copy;
  }

  TensorId attention(TensorId qkv);
  TensorId attention_on_parts(TensorId qkv);
  TensorId unfused_attention(TensorId qkv);
  /// From the normalised stream to the product that ends the branch, without its bias.
  TensorId attention_branch(TensorId x);
  /// Two matrices, or three, with the activation between them.
  TensorId mlp(const std::string& name, TensorId x, std::int64_t width);
  TensorId experts_branch(TensorId x);
  /// The branch behind attention, without its bias.
  TensorId feed_forward(TensorId x, LayerKind kind) {
    return kind == LayerKind::kDense ? mlp("mlp", x, model_.ffn_width()) : experts_branch(x);
  }

  Graph take(std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
    graph_.inputs = std::move(inputs);
    graph_.outputs = std::move(outputs);
    return std::move(graph_);
  }

  bool gated() const { return model_.activation == Activation::kSwiglu; }
  /// What stands between the products of an mlp without biases.
  TensorId activated(const std::string& name, TensorId up);
  /// Over which the experts of a layer are divided.
  std::vector<Axis> expert_axes() const {
    std::vector<Axis> axes;
    if (options_.experts_over_tensor) axes.push_back(tensor_axis_);
    if (options_.experts_over_context) axes.insert(axes.end(), context().begin(), context().end());
    std::ranges::copy_if(batch_axes_, std::back_inserter(axes),
                         [&](Axis axis) { return divides_experts(axis); });
    return axes;
  }

  const Model& model() const { return model_; }
  const TransformerOptions& options() const { return options_; }
  Settings with_heads(Settings settings = {}) const {
    settings.set("query_heads", model_.heads);
    settings.set("kv_heads", model_.kv());
    return settings;
  }
  Settings attention_settings() const {
    return {{"implementation", std::string(name_of(options_.attention))},
            {"rate", model_.dropout ? kDropoutRate : 0.0}};
  }
  std::int64_t attention_width() const { return model_.heads * model_.head_size(); }
  std::int64_t qkv_width() const {
    return attention_width() + 2 * model_.kv() * model_.head_size();
  }

 private:
  bool divides_experts(Axis axis) const {
    return options_.mesh[static_cast<std::size_t>(axis)].name == "expert";
  }

  const Model& model_;
  const TransformerOptions& options_;
  Axis tensor_axis_;
  std::vector<Axis> batch_axes_;
  std::vector<Axis> context_axes_;
  Graph graph_;
  bool core_attention_ = false;
  Quantization quantization_ = Quantization::kNone;
  std::map<TensorId, TensorId> quantized_;
};

TensorId BlockBuilder::attention(TensorId qkv) {
  if (options_.attention == AttentionImplementation::kUnfused) return unfused_attention(qkv);
  core_attention_ = true;
  const TensorId heads = added({.type = "packed_attention",
                                .name = "attention",
                                .inputs = {qkv},
                                .settings = with_heads(attention_settings()),
                                .output_names = {"context", "attention.logsumexp"}});
  core_attention_ = false;
  return heads;
}

TensorId BlockBuilder::attention_on_parts(TensorId qkv) {
  if (options_.context_exchange == ContextExchange::kAllToAll) {
    std::vector<Axis> heads = tensor();
    heads.insert(heads.end(), context().begin(), context().end());
    graph_[qkv].pinned = Attribute{.dims = {batch(), context(), tensor()}, .partial = {}};
    const TensorId whole = moved("whole_sequences", qkv, {batch(), kWhole, heads});
    return moved("own_tokens", attention(whole), {batch(), context(), tensor()});
  }
  const auto parts = all_added({.type = "split_queries",
                                .name = "split_queries",
                                .inputs = {qkv},
                                .settings = with_heads(),
                                .output_names = {"queries", "keys_values"}});
  Settings settings = with_heads(attention_settings());
  settings.set("own_first", options_.context_exchange == ContextExchange::kOverlappedAllGather);
  core_attention_ = true;
  const TensorId heads = added({.type = "context_attention",
                                .name = "attention",
                                .inputs = parts,
                                .settings = std::move(settings),
                                .output_names = {"context", "attention.logsumexp"}});
  core_attention_ = false;
  return heads;
}

TensorId BlockBuilder::unfused_attention(TensorId qkv) {
  const auto parts = all_added({.type = "split_heads",
                                .name = "split_heads",
                                .inputs = {qkv},
                                .settings = with_heads(),
                                .output_names = {"query", "key", "value"}});
  const auto product = [&](const std::string& name, const std::string& equation, TensorId a,
                           TensorId b) {
    return added({.type = "einsum",
                  .name = name,
                  .inputs = {a, b},
                  .settings = {{"equation", equation}, {"grouped", std::string("a")}}});
  };
  core_attention_ = true;
  const TensorId scores = product("scores", "bsad,btad->bast", parts[0], parts[1]);
  const double scale = 1 / std::sqrt(static_cast<double>(model_.head_size()));
  TensorId weights = added({.type = "softmax",
                            .name = "softmax",
                            .inputs = {scores},
                            .settings = {{"scale", scale}, {"causal", true}}});
  if (model_.dropout)
    weights = added({.type = "dropout",
                     .name = "attention_dropout",
                     .inputs = {weights},
                     .settings = {{"rate", kDropoutRate}, {"fused", true}},
                     .output_names = {"attention_dropout", "attention_dropout.mask"}});
  const TensorId heads = product("context_heads", "bast,btad->basd", weights, parts[2]);
  core_attention_ = false;
  return added({.type = "merge_heads",
                .name = "merge_heads",
                .inputs = {heads},
                .output_names = {"context"}});
}

TensorId BlockBuilder::qk_norm(TensorId qkv) {
  if (model_.qk_norm == QkNorm::kNone) return qkv;
  const std::int64_t d = model_.head_size();
  const bool shared = model_.qk_norm == QkNorm::kPerHead;
  const std::vector<Axis> split = model_.qk_norm == QkNorm::kEveryHead ? tensor() : kWhole;
  std::vector<TensorId> inputs{qkv};
  for (const bool shift : {false, true}) {
    if (shift && !(shared && has_shift(model_.norm))) continue;
    const std::string part = shift ? ".bias" : ".weight";
    inputs.push_back(parameter("q_norm" + part, {shared ? d : model_.heads * d}, {split}));
    inputs.push_back(parameter("k_norm" + part, {shared ? d : model_.kv() * d}, {split}));
  }
  const bool rms = model_.norm == Norm::kRmsNorm;
  return added({.type = "head_norm",
                .name = "qk_norm",
                .inputs = std::move(inputs),
                .settings = with_heads({{"norm", std::string(rms ? "rms" : "layer")},
                                        {"together", model_.qk_norm == QkNorm::kAllHeads},
                                        {"kernels", name_of_kernels(options_.pointwise.norm)}})});
}

TensorId BlockBuilder::attention_branch(TensorId x) {
  TensorId qkv = matmul("qkv", x, model_.hidden, qkv_width(), {kWhole, tensor()});
  if (model_.has_qkv_bias()) fused_bias("qkv", qkv, qkv_width(), tensor());
  qkv = qk_norm(qkv);
  if (model_.positions == Positions::kRotary)
    qkv = added({.type = "rope",
                 .name = "rope",
                 .inputs = {qkv},
                 .settings = with_heads({{"eager", eager(options_.pointwise.rope)}})});
  const TensorId heads = context().empty() ? attention(qkv) : attention_on_parts(qkv);
  return matmul("attention_out", heads, attention_width(), model_.hidden, {tensor(), kWhole});
}

TensorId BlockBuilder::activated(const std::string& name, TensorId up) {
  if (gated())
    return added({.type = "swiglu",
                  .name = name,
                  .inputs = {up},
                  .settings = {{"eager", eager(options_.pointwise.activation)}}});
  return added({.type = "unary",
                .name = name,
                .inputs = {up},
                .settings = {{"operation", std::string("gelu")}}});
}

TensorId BlockBuilder::mlp(const std::string& name, TensorId x, std::int64_t width) {
  const std::int64_t up_width = gated() ? 2 * width : width;
  const TensorId up = matmul(name + "_up", x, model_.hidden, up_width, {kWhole, tensor()});
  TensorId between;
  if (model_.has_mlp_bias() && !gated()) {
    between = added({.type = "bias_gelu",
                     .name = name + "_activation",
                     .inputs = {up, parameter(name + "_up.bias", {width}, {tensor()})}});
  } else {
    if (model_.has_mlp_bias()) fused_bias(name + "_up", up, up_width, tensor());
    between = activated(name + "_activation", up);
  }
  return matmul(name + "_down", between, width, model_.hidden, {tensor(), kWhole});
}

// Tokens lie [batch, tokens, width], or in `parts` of a sequence [batch, parts, tokens, width];
// slots the same behind a dimension of experts.
TensorId BlockBuilder::experts_branch(TensorId x) {
  const std::int64_t hidden = model_.hidden;
  const std::int64_t parts = ways(sequence(), options_.mesh);
  const std::int64_t length = model_.sequence / parts;
  const auto slots = static_cast<std::int64_t>(
      std::ceil(options_.capacity_factor * static_cast<double>(length * model_.experts_per_token) /
                static_cast<double>(model_.experts)));
  const std::int64_t capacity = std::min(length, slots);
  const TensorId tokens =
      parts > 1 ? reshaped("tokens", x, {options_.batch, parts, length, hidden}) : x;

  const bool is_quantized = quantization_ != Quantization::kNone;
  quantize(false);
  const TensorId logits = matmul("router", tokens, hidden, model_.experts, {kWhole, kWhole});
  quantize(is_quantized);
  const TensorId probabilities =
      added({.type = "softmax", .name = "router_softmax", .inputs = {logits}});
  const auto chosen = all_added({.type = "top_k",
                                 .name = "top_k",
                                 .inputs = {probabilities},
                                 .settings = {{"k", model_.experts_per_token}},
                                 .output_names = {"router_weights", "router_choice"}});

  // Where slots lie: with the tokens that fill them, and with their experts.
  const std::vector<Axis> expert_axes = this->expert_axes();
  std::vector<std::vector<Axis>> at_tokens{kWhole, batch()};
  std::vector<std::vector<Axis>> at_experts{expert_axes, without(batch(), {expert_axes})};
  if (parts > 1) {
    at_tokens.push_back(sequence());
    at_experts.push_back(without(context(), {expert_axes}));
  }
  for (auto* lies : {&at_tokens, &at_experts}) lies->resize(lies->size() + 2);

  const TensorId dispatched =
      added({.type = "moe_dispatch",
             .name = "dispatch",
             .inputs = {tokens, chosen[1]},
             .settings = {{"experts", model_.experts}, {"capacity", capacity}}});
  graph_[dispatched].pinned = Attribute{.dims = at_tokens, .partial = {}};
  const TensorId arrived = moved("arrived", dispatched, at_experts);
  const std::string letters = parts > 1 ? "ebpt" : "ebt";
  const auto expert_product = [&](const std::string& name, TensorId of, std::int64_t in,
                                  std::int64_t out, std::vector<std::vector<Axis>> dims) {
    const TensorId weight = parameter(name + ".weight", {model_.experts, in, out}, std::move(dims));
    return product({.type = "einsum",
                    .name = name,
                    .inputs = {of, weight},
                    .settings = {{"equation", letters + "i,eio->" + letters + "o"}}});
  };
  const std::vector<Axis> width_axes = options_.experts_over_tensor ? kWhole : tensor();
  const std::int64_t width = model_.expert_width();
  const TensorId up = expert_product("experts_up", arrived, hidden, gated() ? 2 * width : width,
                                     {expert_axes, kWhole, width_axes});
  const TensorId down = expert_product("experts_down", activated("experts_activation", up), width,
                                       hidden, {expert_axes, width_axes, kWhole});
  TensorId mixed = added({.type = "moe_combine",
                          .name = "combine",
                          .inputs = {moved("returned", down, at_tokens), chosen[1], chosen[0]}});
  if (parts > 1) mixed = reshaped("mixed", mixed, this->tokens(hidden));
  if (model_.shared_ffn == 0) return mixed;
  return sum("experts_sum", mixed, mlp("shared", x, model_.shared_ffn));
}

// Attention and the feed-forward layer side by side: their summands are added before ranks add
// theirs up, once for both.
// Source: EleutherAI/gpt-neox, megatron/model/transformer.py (gpt_j_residual).
TensorId parallel_layer(BlockBuilder& build, TensorId x, LayerKind kind) {
  const Model& model = build.model();
  const TensorId norm1 = build.norm("attention_norm", x);
  const TensorId norm2 =
      model.branches == Branches::kParallelOneNorm ? norm1 : build.norm("mlp_norm", x);
  const TensorId attended = build.attention_branch(norm1);
  if (model.has_attention_out_bias())
    build.fused_bias("attention_residual", attended, model.hidden, build.kWhole);
  const TensorId fed = build.feed_forward(norm2, kind);
  if (model.has_mlp_bias()) build.fused_bias("mlp_residual", fed, model.hidden, build.kWhole);
  return build.join("residual", build.sum("branches", attended, fed), false, x, "layer_out");
}

Graph layer_graph(const Model& model, const TransformerOptions& options, LayerKind kind) {
  BlockBuilder build(kind == LayerKind::kDense ? "layer" : "expert_layer", model, options);
  build.quantize();
  const TensorId x = build.boundary("layer_in");
  if (model.branches != Branches::kSequential) {
    const TensorId y = parallel_layer(build, x, kind);
    return build.take({x}, {y});
  }
  const auto normed = [&](const std::string& name, TensorId stream) {
    return model.norm_places == NormPlaces::kAfter ? stream : build.norm(name, stream);
  };
  const TensorId attended = build.attention_branch(normed("attention_norm", x));
  const TensorId middle =
      build.join("attention_residual", attended, model.has_attention_out_bias(), x);
  const TensorId fed = build.feed_forward(normed("mlp_norm", middle), kind);
  return build.take({x},
                    {build.join("mlp_residual", fed, model.has_mlp_bias(), middle, "layer_out")});
}

std::int64_t padded_vocabulary(const Model& model, const TransformerOptions& options) {
  const std::int64_t multiple = std::max<std::int64_t>(1, options.vocabulary_multiple);
  return (model.vocabulary + multiple - 1) / multiple * multiple;
}

Graph embedding_graph(const Model& model, const TransformerOptions& options) {
  BlockBuilder build("embedding", model, options);
  const TensorId ids = build.typed("token_ids", {options.batch, model.sequence}, DType::kInt64);
  const TensorId table =
      build.parameter("embedding.weight", {padded_vocabulary(model, options), model.hidden},
                      {build.tensor(), build.kWhole});
  const bool learned = model.positions == Positions::kLearned;
  const std::string sum = model.embedding_norm ? "embedding_sum" : "embedded";
  TensorId out = build.added({.type = "embedding",
                              .name = "embedding",
                              .inputs = {ids, table},
                              .settings = {{"every_row", true}},
                              .output_names = {learned ? "embedding" : sum}});
  if (learned) {
    const TensorId positions = build.parameter(
        "position.weight", {model.position_rows(), model.hidden}, {build.kWhole, build.kWhole});
    out = build.added({.type = "add_positions",
                       .name = "add_positions",
                       .inputs = {out, positions},
                       .settings = {{"in_parts", !build.context().empty()}},
                       .output_names = {sum}});
  }
  if (model.embedding_norm) out = build.norm("embedding_norm", out, "embedded");
  build.at_boundary(out);
  Graph graph = build.take({}, {out});
  graph[ids].pinned = Attribute{.dims = {build.batch(), build.context()}, .partial = {}};
  return graph;
}

Graph head_graph(const Model& model, const TransformerOptions& options) {
  BlockBuilder build("head", model, options);
  const TensorId x = build.boundary("head_in");
  const TensorId normed = build.norm("final_norm", x);
  const std::int64_t v = padded_vocabulary(model, options);
  const TensorId logits =
      build.matmul("logits", normed, model.hidden, v, {build.kWhole, build.tensor()});
  if (model.head_bias) build.fused_bias("logits", logits, v, build.tensor());
  const TensorId targets = build.typed("targets", {options.batch, model.sequence}, DType::kInt64);
  // Vocabulary-parallel cross-entropy: each rank finds the maximum of its part of the vocabulary,
  // then, with that of all, the sum of exponentials and the target's logit of its part; those three
  // per token are what is reduced.
  // Source: Megatron-LM, megatron/core/fusions/fused_cross_entropy.py.
  const TensorId maximum =
      build.added({.type = "vocabulary_maximum", .name = "loss.maximum", .inputs = {logits}});
  const DType kept = options.fused_cross_entropy ? options.dtype : DType::kFp32;
  const TensorId parts =
      build.added({.type = "vocabulary_cross_entropy",
                   .name = "loss",
                   .inputs = {logits, maximum, targets},
                   .settings = {{"to", std::string(name_of(kept))},
                                {"kernels", name_of_kernels(options.pointwise.cross_entropy)}},
                   .output_names = {"loss.partial", "loss.exponentials"}});
  const TensorId statistics = build.added({.type = "vocabulary_loss",
                                           .name = "loss.combine",
                                           .inputs = {parts},
                                           .output_names = {"loss"}});
  Graph graph = build.take({x}, {statistics});
  graph[targets].pinned = Attribute{.dims = {build.batch(), build.context()}, .partial = {}};
  return graph;
}

}  // namespace

TransformerGraphs transformer_graphs(const Model& model, const TransformerOptions& options) {
  TransformerGraphs graphs{.embedding = embedding_graph(model, options),
                           .layers = {},
                           .head = head_graph(model, options)};
  for (const LayerKind kind : model.layer_kinds())
    graphs.layers.push_back(layer_graph(model, options, kind));
  return graphs;
}

}  // namespace foreshard
