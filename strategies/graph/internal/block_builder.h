/// \file
/// What the blocks of a transformer are built with (transformer.h).
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
inline constexpr double kAdapterScale = 2;   // and so does any scale

inline bool eager(OtherKernels kernels) {
  return kernels == OtherKernels::kEager;
}
inline std::string name_of_kernels(NormKernels kernels) {
  return kernels == NormKernels::kEager            ? "eager"
         : kernels == NormKernels::kRecomputedFp32 ? "recomputed-fp32"
                                                   : "fused";
}
inline std::string name_of_kernels(LossKernels kernels) {
  return kernels == LossKernels::kEager        ? "eager"
         : kernels == LossKernels::kRecomputed ? "recomputed"
                                               : "fused";
}

/// Adds tensors and operators of one block. Dimensions in attributes are given by the axes.
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
    // The last cuts finest: what goes to the ranks of other experts is a part of the rank's own.
    std::ranges::stable_sort(batch_axes_, {}, [&](Axis axis) { return held_along(axis); });
    graph_.name = std::move(name);
    graph_.gradients_apart = true;
  }

  const std::vector<Axis> kWhole{};
  const std::vector<Axis>& tensor() const { return tensor_axes_; }
  const std::vector<Axis>& batch() const { return batch_axes_; }
  /// Over which sequences are cut everywhere.
  const std::vector<Axis>& context() const { return context_axes_; }
  /// Of these, those whose ranks exchange tokens for heads before attention, and the others.
  std::vector<Axis> heads_exchanged() const {
    std::vector<Axis> axes = context();
    if (options_.context_exchange != ContextExchange::kAllToAll)
      std::erase_if(axes, [&](Axis axis) {
        return !exchanges_heads(options_.mesh[static_cast<std::size_t>(axis)]);
      });
    return axes;
  }
  /// Over which they are cut between the tensor-parallel parts.
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
  /// Ids of the tokens that lie on the rank.
  TensorId token_ids() { return given("token_ids", {options_.batch, model_.sequence}); }
  /// Whole numbers that come as data, for the tokens that lie on the rank.
  TensorId given(const std::string& name, std::vector<std::int64_t> shape) {
    const TensorId ids = typed(name, std::move(shape), DType::kInt64);
    graph_[ids].pinned = Attribute{.dims = {batch(), context()}, .partial = {}};
    return ids;
  }
  /// Their rows of the table of embeddings.
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
  /// The residual stream between blocks.
  TensorId boundary(const std::string& name) {
    return at_boundary(activation(name, tokens(model_.hidden)));
  }
  TensorId at_boundary(TensorId id) { return pin(id, {batch(), sequence(), kWhole}); }
  /// The parameter is not trained.
  void freeze(TensorId id) { graph_[id].frozen = true; }
  /// The tensor goes through the block, and its bytes are booked elsewhere.
  void carry(TensorId id) { graph_[id].carried = true; }
  /// The tensor lies so.
  TensorId pin(TensorId id, std::vector<std::vector<Axis>> dims) {
    graph_[id].pinned = Attribute{.dims = std::move(dims), .partial = {}};
    return id;
  }
  /// The streams of all predictions, behind the layers: [predictions, batch, sequence, hidden].
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
  /// A weight as products read it.
  TensorId held(TensorId weight) {
    if (!in_layer_ || !model_.adapters || model_.adapters->base == AdapterBase::kPlain)
      return weight;
    return added(
        {.type = "dequantize", .name = graph_[weight].name + ".dequantized", .inputs = {weight}});
  }
  /// What is added from here on belongs to a layer.
  void begin_layer() {
    in_layer_ = true;
    quantize(!kind_.unquantized);
  }
  /// Parameters that are added from here on are not trained, or are again.
  void freeze(bool on) { is_frozen_ = on; }
  /// What is added from here on belongs to this part.
  void begin(Part part) { part_ = part; }
  /// What is added from here on can be captured so.
  void capture(Capture as) { capture_ = as; }

  /// Of activations and a parameter.
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
  /// For the products that read `x`: once for all. `apart`: each expert's rows by themselves.
  TensorId quantized(TensorId x, bool apart) {
    const auto [known, is_new] = quantized_.try_emplace(x);
    if (!is_new) return known->second;
    // What arrives quantized lacks the copy that the gradient of a weight reads.
    const bool is_narrow = size_of(graph_[x].dtype) < 2_B;
    if (is_narrow && model_.adapters.has_value()) return known->second = x;
    known->second = added({.type = "quantize",
                           .name = graph_[x].name + "." + std::string(yaml::name_of(quantization_)),
                           .inputs = {x},
                           .settings = {{"recipe", std::string(yaml::name_of(quantization_))},
                                        {"both", !model_.adapters.has_value() && !is_narrow},
                                        {"apart", apart}}});
    // What is made again is quantized again.
    const Operator* made = maker_of(x);
    if (made != nullptr && !keeps_results(made->part)) graph_.operators.back().part = made->part;
    return known->second;
  }

  /// Quantized along rows alone, to be sent or kept; and back.
  TensorId narrowed(TensorId x) {
    return added(
        {.type = "quantize",
         .name = graph_[x].name + ".narrowed",
         .inputs = {x},
         .settings = {{"recipe", std::string(yaml::name_of(quantization_))}, {"both", false}}});
  }
  /// In fp8 whatever the recipe. `kept`: the backward pass reads it in place of `x`.
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

  /// Null of what the block is given.
  Operator* maker_of(TensorId x) {
    const auto made = std::ranges::find_if(graph_.operators, [&](const Operator& op) {
      return std::ranges::find(op.outputs, x) != op.outputs.end();
    });
    return made == graph_.operators.end() ? nullptr : &*made;
  }

  /// `output` names the result if it is not named after the norm.
  TensorId norm(const std::string& name, TensorId x, const std::string& output = {}) {
    begin(Part::kNorm);
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
  /// them. `output` names the result if it is not named after the addition.
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
    begin(Part::kResidual);
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
    Operator* made = maker_of(y);
    while (made != nullptr && made->part == Part::kAdapters) made = maker_of(made->inputs.front());
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
  /// `of` where it is to lie as `to` says: the conversion is communication.
  TensorId moved(const std::string& name, TensorId of, std::vector<std::vector<Axis>> to) {
    const TensorId copy = reshaped(name, of, graph_[of].shape);
    graph_[copy].pinned = Attribute{.dims = std::move(to), .partial = {}};
    return copy;
  }

  /// `y`, the product of `x` and a weight split as `dims` says, with what the model's adapter of
  /// the layer adds.
  TensorId adapted(AdapterTarget target, const std::string& name, TensorId y, TensorId x,
                   const std::vector<std::vector<Axis>>& dims);

  /// By an operator "packed_attention" or "context_attention"; `inputs` are its inputs but for
  /// sinks.
  TensorId attention(std::string type, std::vector<TensorId> inputs, Settings settings);
  TensorId packed_attention(TensorId qkv);
  TensorId attention_on_parts(TensorId qkv);
  TensorId attention_between(TensorId qkv);  ///< Of the parts of sequences that ranks have.
  TensorId context_attention(std::vector<TensorId> parts, Settings settings);
  TensorId unfused_attention(TensorId qkv);
  /// Of queries, keys and values in one projection, and of those that come from latents.
  TensorId projected_attention(TensorId x);
  TensorId latent_attention(TensorId x);
  /// From the normalised stream to the product that ends the branch, without its bias.
  TensorId attention_branch(TensorId x);
  /// Likewise, of a Mamba layer.
  TensorId mamba_branch(TensorId x);
  /// Two matrices, or three, with the activation between them.
  TensorId mlp(const std::string& name, TensorId x, std::int64_t width);
  TensorId experts_branch(TensorId x);
  /// Weights and choices of experts for `tokens`.
  std::vector<TensorId> routed(TensorId tokens);
  /// What the experts of every token give.
  TensorId shared_experts(TensorId x);
  /// The branch behind attention, without its bias if it is one feed-forward layer.
  TensorId feed_forward(TensorId x) {
    return kind_.experts ? experts_branch(x) : mlp("mlp", x, model_.ffn_width());
  }
  /// How a CUDA graph can have it.
  Capture feed_forward_capture() const { return kind_.experts ? Capture::kRouter : Capture::kMlp; }
  /// A whole layer. `output` names its result; `encoded` are the encoder's states, where the layer
  /// attends to them.
  TensorId layer(TensorId x, const std::string& output, TensorId encoded = {});
  TensorId one_branch_layer(TensorId x, const std::string& output);
  /// As attention_branch(), to the states of the encoder.
  TensorId cross_attention_branch(TensorId x, TensorId encoded);
  /// Queries, keys and values by products of their own, of which keys have no bias; side by side,
  /// head by head.
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
  /// What stands between the products of an mlp without biases. `up`: with the gate before it,
  /// where that is apart.
  /// \param weighted  the last of `up` is a factor for each row of the result.
  TensorId activated(const std::string& name, std::vector<TensorId> up, bool weighted = false);
  /// Axes that cut a sequence, in runs of neighbours whose ranks hold copies of the experts, parts
  /// of the same, or others: tokens stay along the first and move along the others.
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
  // What ranks along an axis hold of the experts.
  enum class Held : std::uint8_t { kCopies, kPartsOfOne, kOthers };
  Held held_along(Axis axis) const {
    const auto contains = [&](const std::vector<Axis>& axes) {
      return std::ranges::find(axes, axis) != axes.end();
    };
    return contains(expert_axes_)          ? Held::kOthers
           : contains(expert_tensor_axes_) ? Held::kPartsOfOne
                                           : Held::kCopies;
  }

  const Model& model_;
  const TransformerOptions& options_;
  LayerKind kind_;
  std::vector<Axis> tensor_axes_;
  std::vector<Axis> expert_axes_;         // over which the experts of a layer are divided
  std::vector<Axis> expert_tensor_axes_;  // over which each is split
  std::vector<Axis> batch_axes_;
  std::vector<Axis> context_axes_;
  Graph graph_;
  Part part_ = Part::kNone;
  Capture capture_ = Capture::kNone;
  bool in_layer_ = false;
  bool is_frozen_ = false;
  Quantization quantization_ = Quantization::kNone;
  std::map<TensorId, TensorId> quantized_;
};

/// A layer of a model with an encoder.
Graph layer_graph_beside_encoder(const Model& model, const TransformerOptions& options,
                                 LayerKind kind);
/// The embedding of the tokens that the encoder reads, or of its frames of sound; `table` is that
/// of the vocabulary.
TensorId embedded_for_encoder(BlockBuilder& build, TensorId table);

/// The embedding of squares of an image, behind the class token. \pre the model reads images.
TensorId embedded_image(BlockBuilder& build);
/// ... with a row of the table of the types of tokens added to each. \pre the model has them.
TensorId with_token_types(BlockBuilder& build, TensorId embedded);
/// What the projection to the vocabulary reads where tokens are masked.
TensorId transformed(BlockBuilder& build, TensorId states);
/// The loss of the first token's class, or, where none are told, its state behind the pooler.
/// \pre the model has either.
TensorId of_first_token(BlockBuilder& build, TensorId states);
/// Of logits, of whose vocabulary ranks may hold parts.
TensorId vocabulary_loss(BlockBuilder& build, const std::string& name, TensorId logits,
                         TensorId targets);

/// The module that predicts the token `depth` + 1 behind; the first has depth 1.
Graph prediction_graph(const Model& model, const TransformerOptions& options, std::int64_t depth);

}  // namespace foreshard::internal
