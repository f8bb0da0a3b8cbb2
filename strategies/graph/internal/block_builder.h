/// \file
/// The builder of the blocks of a transformer (transformer.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

#include "strategies/graph/mesh_axes.h"
#include "strategies/graph/operators/build.h"
#include "strategies/graph/transformer.h"

namespace foreshard::internal {

inline constexpr double kDropoutRate = 0.1;  // any rate costs the same
inline constexpr double kAdapterScale = 2;   // any scale costs the same

inline bool eager(OtherKernels kernels) {
  return kernels == OtherKernels::kEager;
}
inline std::string name_of_kernels(NormKernels kernels) {
  return kernels == NormKernels::kEager            ? "eager"
         : kernels == NormKernels::kRecomputedFp32 ? "recomputed-fp32"
         : kernels == NormKernels::kAutocast       ? "autocast"
                                                   : "fused";
}
inline std::string name_of_kernels(LossKernels kernels) {
  return kernels == LossKernels::kEager        ? "eager"
         : kernels == LossKernels::kRecomputed ? "recomputed"
         : kernels == LossKernels::kLogSoftmax ? "log-softmax"
                                               : "fused";
}

/// Adds tensors and operators of one block. Each dimension of an attribute is a list of axes.
class BlockBuilder {
 public:
  BlockBuilder(std::string name, const Model& model, const TransformerOptions& options,
               LayerKind kind = {})
      : model_(model),
        options_(options),
        kind_(kind),
        tensor_axes_(tensor_axes(options.mesh)),
        expert_axes_(expert_axes(options.mesh)),
        expert_tensor_axes_(expert_tensor_axes(options.mesh)),
        batch_axes_(sample_axes(options.mesh)),
        context_axes_(context_axes(options.mesh)) {
    // Axes of other experts come last, where they cut finest: the tokens that a rank sends along
    // them are then a part of its own.
    std::ranges::stable_sort(batch_axes_, {}, [&](Axis axis) { return held_along(axis); });
    graph_.name = std::move(name);
    graph_.gradients_apart = true;
  }

  const std::vector<Axis> kWhole{};
  const std::vector<Axis>& tensor() const { return tensor_axes_; }
  const std::vector<Axis>& batch() const { return batch_axes_; }
  /// Axes over which sequences are split everywhere.
  const std::vector<Axis>& context() const { return context_axes_; }
  /// The part of context() whose ranks exchange tokens for heads before attention.
  std::vector<Axis> heads_exchanged() const {
    std::vector<Axis> axes = context();
    if (options_.context_exchange != ContextExchange::kAllToAll)
      std::erase_if(axes, [&](Axis axis) {
        return !exchanges_heads(options_.mesh[static_cast<std::size_t>(axis)]);
      });
    return axes;
  }
  /// Axes over which sequences are split between the tensor-parallel parts.
  std::vector<Axis> sequence() const {
    std::vector<Axis> axes = context();
    if (options_.sequence_parallel)
      axes.insert(axes.end(), tensor_axes_.begin(), tensor_axes_.end());
    return axes;
  }

  TensorId activation(const std::string& name, std::vector<std::int64_t> shape) {
    return graph_.add({.name = name, .dtype = options_.dtype, .shape = std::move(shape)});
  }
  TensorId typed(const std::string& name, std::vector<std::int64_t> shape, DType dtype) {
    return graph_.add({.name = name, .dtype = dtype, .shape = std::move(shape)});
  }
  /// Rows of the table of embeddings.
  std::int64_t vocabulary() const {
    const std::int64_t multiple = std::max<std::int64_t>(1, options_.vocabulary_multiple);
    return (model_.vocabulary + multiple - 1) / multiple * multiple;
  }
  /// Ids of the rank's tokens.
  TensorId token_ids() { return given("token_ids", {options_.batch, model_.sequence}); }
  /// Integers that come as data, for the rank's tokens.
  TensorId given(const std::string& name, std::vector<std::int64_t> shape) {
    const TensorId ids = typed(name, std::move(shape), DType::kInt64);
    graph_[ids].pinned = Attribute{.dims = {batch(), context()}, .partial = {}};
    return ids;
  }
  /// Rows of the table of embeddings for `ids`.
  TensorId looked_up(TensorId ids, const std::string& output) {
    return looked_up(
        ids, parameter("embedding.weight", {vocabulary(), model_.hidden}, {tensor(), kWhole}),
        output);
  }
  TensorId looked_up(TensorId ids, TensorId table, const std::string& output,
                     const std::string& name = "embedding") {
    return added({.type = "embedding",
                  .name = name,
                  .inputs = {ids, table},
                  .settings = {{"every_row", true}},
                  .output_names = {output}});
  }
  /// A tensor of the residual stream between blocks.
  TensorId boundary(const std::string& name) {
    return at_boundary(activation(name, tokens(model_.hidden)));
  }
  TensorId at_boundary(TensorId id) { return pin(id, {batch(), sequence(), kWhole}); }
  /// Marks a parameter as not trained.
  void freeze(TensorId id) { graph_[id].frozen = true; }
  /// Marks a tensor that only passes through the block; another block counts its bytes.
  void carry(TensorId id) { graph_[id].carried = true; }
  /// Pins the tensor to `dims`.
  TensorId pin(TensorId id, std::vector<std::vector<Axis>> dims) {
    graph_[id].pinned = Attribute{.dims = std::move(dims), .partial = {}};
    return id;
  }
  /// The streams of all predictions, after the layers: [predictions, batch, sequence, hidden].
  TensorId streams(const std::string& name, std::int64_t predictions) {
    return as_streams(
        activation(name, {predictions, options_.batch, model_.sequence, model_.hidden}));
  }
  TensorId as_streams(TensorId id) {
    graph_[id].pinned = Attribute{.dims = {kWhole, batch(), sequence(), kWhole}, .partial = {}};
    return id;
  }
  TensorId parameter(const std::string& name, std::vector<std::int64_t> shape,
                     std::vector<std::vector<Axis>> dims) {
    return graph_.add({.name = name,
                       .dtype = options_.dtype,
                       .shape = std::move(shape),
                       .role = TensorRole::kParameter,
                       .pinned = Attribute{.dims = std::move(dims), .partial = {}},
                       .frozen = model_.adapters.has_value() || is_frozen_ || kind_.frozen});
  }
  std::vector<std::int64_t> tokens(std::int64_t width) const {
    return {options_.batch, model_.sequence_of(kind_), width};
  }

  std::vector<TensorId> all_added(OperatorSpec spec) {
    auto results = add_operator(graph_, std::move(spec));
    FORESHARD_CHECK(results.has_value());
    graph_.operators.back().part = part_;
    graph_.operators.back().capture = capture_;
    return *std::move(results);
  }
  TensorId added(OperatorSpec spec) { return all_added(std::move(spec)).front(); }

  TensorId matmul(const std::string& name, TensorId x, std::int64_t in, std::int64_t out,
                  std::vector<std::vector<Axis>> dims) {
    return product({.type = "matmul",
                    .name = name,
                    .inputs = {x, held(parameter(name + ".weight", {in, out}, std::move(dims)))}});
  }
  /// The weight as products read it: dequantized if the adapters' base is held quantized.
  TensorId held(TensorId weight) {
    if (!in_layer_ || !model_.adapters || model_.adapters->base == AdapterBase::kPlain)
      return weight;
    return added(
        {.type = "dequantize", .name = graph_[weight].name + ".dequantized", .inputs = {weight}});
  }
  /// Operators added from here on belong to a layer.
  void begin_layer() {
    in_layer_ = true;
    quantize(!kind_.unquantized);
  }
  /// Parameters added from here on are frozen (`on`), or trained again.
  void freeze(bool on) { is_frozen_ = on; }
  /// Operators added from here on belong to this part.
  void begin(LayerPart part) { part_ = part; }
  /// Operators added from here on can be captured as `as`.
  void capture(Capture as) { capture_ = as; }

  /// A product of activations and a parameter, quantized if the recipe says so.
  TensorId product(OperatorSpec spec) {
    if (quantization_ == Quantization::kNone) return added(std::move(spec));
    spec.inputs.front() =
        quantized(spec.inputs.front(), spec.settings.has("apart") && spec.settings.flag("apart"));
    spec.settings.set("to", std::string(name_of(options_.dtype)));
    spec.settings.set("recipe", std::string(yaml::name_of(quantization_)));
    return added(std::move(spec));
  }
  /// From here on, products are quantized as the options say, or not.
  void quantize(bool on = true) {
    quantization_ = on ? options_.quantization : Quantization::kNone;
  }
  /// `x` quantized, once for all products that read it. `apart`: each expert's rows separately.
  TensorId quantized(TensorId x, bool apart) {
    const auto [known, is_new] = quantized_.try_emplace(x);
    if (!is_new) return known->second;
    // A tensor that arrives quantized lacks the copy that the gradient of a weight reads.
    const bool is_narrow = size_of(graph_[x].dtype) < 2_B;
    if (is_narrow && model_.adapters.has_value()) return known->second = x;
    known->second = added({.type = "quantize",
                           .name = graph_[x].name + "." + std::string(yaml::name_of(quantization_)),
                           .inputs = {x},
                           .settings = {{"recipe", std::string(yaml::name_of(quantization_))},
                                        {"both", !model_.adapters.has_value() && !is_narrow},
                                        {"apart", apart}}});
    // If recomputation drops `x`, it is quantized again, too.
    const Operator* made = maker_of(x);
    if (made != nullptr && !keeps_results(made->part)) graph_.operators.back().part = made->part;
    return known->second;
  }

  /// `x` quantized along rows alone, to be sent or saved. widened() is the reverse.
  TensorId narrowed(TensorId x) {
    return added(
        {.type = "quantize",
         .name = graph_[x].name + ".narrowed",
         .inputs = {x},
         .settings = {{"recipe", std::string(yaml::name_of(quantization_))}, {"both", false}}});
  }
  /// `x` in fp8 whatever the recipe. `kept`: the backward pass reads the result in place of `x`.
  TensorId in_fp8(TensorId x, bool kept) {
    return added({.type = "quantize",
                  .name = graph_[x].name + ".fp8",
                  .inputs = {x},
                  .settings = {{"recipe", std::string(yaml::name_of(Quantization::kFp8Delayed))},
                               {"both", false},
                               {"kept", kept}}});
  }
  TensorId widened(TensorId x) {
    return added({.type = "cast",
                  .name = graph_[x].name + ".widened",
                  .inputs = {x},
                  .settings = {{"to", std::string(name_of(options_.dtype))}}});
  }

  /// The operator that makes `x`; null for a tensor that is given to the block.
  Operator* maker_of(TensorId x) {
    const auto made = std::ranges::find_if(graph_.operators, [&](const Operator& op) {
      return std::ranges::find(op.outputs, x) != op.outputs.end();
    });
    return made == graph_.operators.end() ? nullptr : &*made;
  }

  /// A norm of the model's kind. `output` names the result; empty: it is named after the norm.
  TensorId norm(const std::string& name, TensorId x, const std::string& output = {}) {
    begin(LayerPart::kNorm);
    std::vector<TensorId> inputs{x};
    for (const bool shift : {false, true})
      if (shift ? has_shift(model_.norm) : has_scale(model_.norm))
        inputs.push_back(
            parameter(name + (shift ? ".bias" : ".weight"), {graph_[x].shape.back()}, {kWhole}));
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
  /// them. `output` names the result; empty: it is named after the addition.
  /// \pre if `biased`, `branch` is the result of a matmul, with its adapter.
  TensorId join(const std::string& name, TensorId branch, bool biased, TensorId residual,
                const std::string& output = {}) {
    if (model_.norm_places == NormPlaces::kAfterSum) {
      const TensorId joined = joined_as(name, branch, biased, residual, {});
      return at_boundary(norm(name + "_norm", joined, output));
    }
    if (model_.norm_places != NormPlaces::kBefore) {
      if (std::exchange(biased, false)) fused_bias(name, branch, model_.hidden, kWhole);
      branch = at_boundary(norm(name + "_norm", branch));
    }
    return joined_as(name, branch, biased, residual, output);
  }
  TensorId joined_as(const std::string& name, TensorId branch, bool biased, TensorId residual,
                     const std::string& output) {
    begin(LayerPart::kResidual);
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

  /// Adds a bias to the matmul that makes `y`. The matmul's epilogue applies it: no forward cost.
  void fused_bias(const std::string& name, TensorId y, std::int64_t width, std::vector<Axis> axes) {
    const TensorId bias = parameter(name + ".bias", {width}, {std::move(axes)});
    Operator* made = maker_of(y);
    while (made != nullptr && made->part == LayerPart::kAdapters)
      made = maker_of(made->inputs.front());
    FORESHARD_CHECK(made != nullptr && made->type == "matmul");
    Operator& producer = *made;
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
  /// `of`, laid out as `to`: the conversion is communication.
  TensorId moved(const std::string& name, TensorId of, std::vector<std::vector<Axis>> to) {
    const TensorId copy = reshaped(name, of, graph_[of].shape);
    graph_[copy].pinned = Attribute{.dims = std::move(to), .partial = {}};
    return copy;
  }

  /// `y` plus the result of the linear layer's adapter, if it has one. `y` is the product of `x`
  /// and a weight that is split as `dims` says.
  TensorId adapted(AdapterTarget target, const std::string& name, TensorId y, TensorId x,
                   const std::vector<std::vector<Axis>>& dims);

  /// Attention by an operator "packed_attention" or "context_attention"; `inputs` are its inputs
  /// without sinks or relative positions.
  TensorId attention(std::string type, std::vector<TensorId> inputs, Settings settings);
  TensorId packed_attention(TensorId qkv);
  TensorId attention_on_parts(TensorId qkv);
  TensorId attention_between(TensorId qkv);  ///< Attention across ranks with parts of sequences.
  TensorId context_attention(std::vector<TensorId> parts, Settings settings);
  TensorId unfused_attention(TensorId qkv);
  /// Attention whose queries, keys and values come from one projection.
  TensorId projected_attention(TensorId x);
  /// Attention whose keys and values come from latents (MLA).
  TensorId latent_attention(TensorId x);
  /// The attention branch: from the normalised stream to its last product, without the bias.
  TensorId attention_branch(TensorId x);
  /// The branch of a Mamba layer, from the normalised stream to its last product.
  TensorId mamba_branch(TensorId x);
  /// A feed-forward layer: two or three matrices with the activation between them.
  TensorId mlp(const std::string& name, TensorId x, std::int64_t width);
  TensorId experts_branch(TensorId x);
  /// Weights and choices of experts for `tokens`.
  std::vector<TensorId> routed(TensorId tokens);
  /// The result of the shared experts, which every token passes.
  TensorId shared_experts(TensorId x);
  /// The branch after attention: experts, or one feed-forward layer without the bias of its last
  /// product.
  TensorId feed_forward(TensorId x) {
    return kind_.experts ? experts_branch(x) : mlp("mlp", x, model_.ffn_width());
  }
  /// How a CUDA graph can capture that branch.
  Capture feed_forward_capture() const { return kind_.experts ? Capture::kRouter : Capture::kMlp; }
  /// A whole layer. `output` names its result; `encoded` are the encoder's states if the layer
  /// attends to them.
  TensorId layer(TensorId x, const std::string& output, TensorId encoded = {});
  TensorId one_branch_layer(TensorId x, const std::string& output);
  /// The cross-attention branch, as attention_branch() but to the states of the encoder.
  TensorId cross_attention_branch(TensorId x, TensorId encoded);
  /// Queries, keys and values (`parts`) by separate products, where keys have no bias; the results
  /// lie side by side, head by head.
  TensorId separate_heads(const std::string& name, TensorId x,
                          const std::vector<std::string>& parts);
  TensorId parallel_layer(TensorId x, const std::string& output);
  bool has_feed_forward_bias() const { return !kind_.experts && model_.has_mlp_bias(); }

  Graph take(std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
    graph_.inputs = std::move(inputs);
    graph_.outputs = std::move(outputs);
    return std::move(graph_);
  }

  bool gated() const { return model_.activation == Activation::kSwiglu; }
  bool squares() const { return model_.activation == Activation::kSquaredRelu; }
  /// The activation between the products of a feed-forward layer without biases.
  /// \param up  the results of the first products: gate and up if they are separate, else one.
  /// \param weighted  `up` has one more, last element: a factor for each row of the result.
  TensorId activated(const std::string& name, std::vector<TensorId> up, bool weighted = false);
  /// The axes that split a sequence, in runs of neighbouring axes along which ranks all hold copies
  /// of the experts, parts of the same experts, or different experts. Tokens stay in place along
  /// runs of copies and move along the others.
  std::vector<std::vector<Axis>> sequence_runs() const;

  const Model& model() const { return model_; }
  const TransformerOptions& options() const { return options_; }
  Settings with_heads(Settings settings = {}) const {
    settings.set("query_heads", model_.heads);
    settings.set("kv_heads", model_.kv());
    return settings;
  }
  Settings attention_settings() const {
    Settings settings = with_heads({{"implementation", std::string(name_of(options_.attention))},
                                    {"rate", model_.dropout ? kDropoutRate : 0.0}});
    if (!model_.is_causal(kind_)) settings.set("causal", false);
    if (model_.has_packed_samples())
      settings.set("sample", model_.samples->equal_length(kind_.window ? model_.window : 0));
    if (!kind_.window) return settings;
    settings.set("window", model_.window);
    settings.set("chunked", model_.window_kind == WindowKind::kChunk);
    return settings;
  }
  LayerKind kind() const { return kind_; }
  std::int64_t attention_width() const { return model_.heads * model_.value_size(); }
  std::int64_t qkv_width() const { return (model_.heads + 2 * model_.kv()) * model_.head_size(); }

 private:
  // How the experts that ranks along an axis hold are related.
  enum class ExpertRelation : std::uint8_t { kCopies, kPartsOfOne, kOthers };
  ExpertRelation held_along(Axis axis) const {
    const auto contains = [&](const std::vector<Axis>& axes) {
      return std::ranges::find(axes, axis) != axes.end();
    };
    return contains(expert_axes_)          ? ExpertRelation::kOthers
           : contains(expert_tensor_axes_) ? ExpertRelation::kPartsOfOne
                                           : ExpertRelation::kCopies;
  }

  const Model& model_;
  const TransformerOptions& options_;
  LayerKind kind_;
  std::vector<Axis> tensor_axes_;
  std::vector<Axis> expert_axes_;         // axes over which the experts of a layer are distributed
  std::vector<Axis> expert_tensor_axes_;  // axes over which each expert is split
  std::vector<Axis> batch_axes_;
  std::vector<Axis> context_axes_;
  Graph graph_;
  LayerPart part_ = LayerPart::kNone;
  Capture capture_ = Capture::kNone;
  bool in_layer_ = false;
  bool is_frozen_ = false;
  Quantization quantization_ = Quantization::kNone;
  std::map<TensorId, TensorId> quantized_;
};

/// A layer of a model with an encoder.
Graph layer_graph_beside_encoder(const Model& model, const TransformerOptions& options,
                                 LayerKind kind);
/// The embedding of the tokens, or of the frames of sound, that the encoder reads; `table` is the
/// embedding table of the vocabulary.
TensorId embedded_for_encoder(BlockBuilder& build, TensorId table);

/// The embedding of the squares of an image, after the class token. \pre the model reads images.
TensorId embedded_image(BlockBuilder& build);
/// `embedded` plus each token's row of the table of token types. \pre the model has that table.
TensorId with_token_types(BlockBuilder& build, TensorId embedded);
/// The input of the projection to the vocabulary with a masked-language head (Head::kMasked).
TensorId transformed(BlockBuilder& build, TensorId states);
/// The loss of the class predicted from the first token; without classes, the first token's state
/// after the pooler. \pre the model has classes or a pooler.
TensorId of_first_token(BlockBuilder& build, TensorId states);
/// Cross-entropy of logits, whose vocabulary may be split over ranks.
TensorId vocabulary_loss(BlockBuilder& build, const std::string& name, TensorId logits,
                         TensorId targets);

/// The module that predicts the token `depth` + 1 places ahead; the first module has depth 1.
Graph prediction_graph(const Model& model, const TransformerOptions& options, std::int64_t depth);

}  // namespace foreshard::internal
