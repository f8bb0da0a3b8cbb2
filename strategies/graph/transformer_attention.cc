// The attention branch of a layer, from the normalised stream to the last product. The builders of
// layers call attention_branch(); a further kind of attention gets a function beside
// projected_attention() and latent_attention(), and a case there.
#include <cmath>

#include "strategies/graph/internal/block_builder.h"

namespace foreshard::internal {

TensorId BlockBuilder::attention(std::string type, std::vector<TensorId> inputs,
                                 Settings settings) {
  if (model_.sinks) inputs.push_back(parameter("attention.sinks", {model_.heads}, {tensor()}));
  if (model_.has_relative_table(kind_)) {
    inputs.push_back(
        parameter("attention.relative", {kRelativeBuckets, model_.heads}, {kWhole, tensor()}));
    settings.set("relative", true);
  }
  begin(LayerPart::kCoreAttention);
  const TensorId heads = added({.type = std::move(type),
                                .name = "attention",
                                .inputs = std::move(inputs),
                                .settings = std::move(settings),
                                .output_names = {"context", "attention.logsumexp"}});
  begin(LayerPart::kAttentionOut);
  return heads;
}

// Attention of one projection (`qkv`) takes one of these ways:
//   packed_attention    each rank has whole sequences.
//   attention_on_parts  sequences are split. Exchanges tokens for heads along heads_exchanged();
//                       then attends locally, or across ranks if other context axes remain.
//   attention_between   attends across ranks that have parts of sequences.
// context_attention adds the operator of the last one. The two settings of copies are numbers of
// passes over x, which need not be whole.
TensorId BlockBuilder::packed_attention(TensorId qkv) {
  if (options_.attention == AttentionImplementation::kUnfused) return unfused_attention(qkv);
  Settings settings = attention_settings();
  if (options_.attention_copies > 0) settings.set("copies", options_.attention_copies);
  if (options_.attention_gradient_copies > 0)
    settings.set("gradient_copies", options_.attention_gradient_copies);
  if (quantization_ == Quantization::kNone || !options_.fp8_attention)
    return attention("packed_attention", {qkv}, std::move(settings));
  begin(LayerPart::kCoreAttention);
  return widened(attention("packed_attention", {in_fp8(qkv, false)}, std::move(settings)));
}

TensorId BlockBuilder::attention_on_parts(TensorId qkv) {
  const std::vector<Axis> exchanged = heads_exchanged();
  if (exchanged.empty()) return attention_between(qkv);
  const std::vector<Axis> others = without(context(), {exchanged});
  std::vector<Axis> heads = tensor();
  heads.insert(heads.end(), exchanged.begin(), exchanged.end());
  graph_[qkv].pinned = Attribute{.dims = {batch(), context(), tensor()}, .partial = {}};
  const TensorId longer = moved("whole_sequences", qkv, {batch(), others, heads});
  return moved("own_tokens", others.empty() ? packed_attention(longer) : attention_between(longer),
               {batch(), context(), tensor()});
}

TensorId BlockBuilder::attention_between(TensorId qkv) {
  return context_attention(all_added({.type = "split_queries",
                                      .name = "split_queries",
                                      .inputs = {qkv},
                                      .settings = with_heads(),
                                      .output_names = {"queries", "keys_values"}}),
                           attention_settings());
}

TensorId BlockBuilder::context_attention(std::vector<TensorId> parts, Settings settings) {
  const ContextExchange how = options_.context_exchange;
  settings.set("own_first", !context().empty() && how == ContextExchange::kOverlappedAllGather);
  settings.set("ring", !context().empty() && how == ContextExchange::kRing);
  return attention("context_attention", std::move(parts), std::move(settings));
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
  begin(LayerPart::kCoreAttention);
  const TensorId scores = product("scores", "bsad,btad->bast", parts[0], parts[1]);
  const double scale = 1 / std::sqrt(static_cast<double>(model_.head_size()));
  TensorId weights = added({.type = "softmax",
                            .name = "softmax",
                            .inputs = {scores},
                            .settings = {{"scale", scale}, {"causal", model_.is_causal(kind_)}}});
  if (model_.dropout)
    weights = added({.type = "dropout",
                     .name = "attention_dropout",
                     .inputs = {weights},
                     .settings = {{"rate", kDropoutRate}, {"fused", true}},
                     .output_names = {"attention_dropout", "attention_dropout.mask"}});
  const TensorId heads = product("context_heads", "bast,btad->basd", weights, parts[2]);
  begin(LayerPart::kAttentionOut);
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

TensorId BlockBuilder::projected_attention(TensorId x) {
  begin(LayerPart::kQkv);
  TensorId qkv;
  if (model_.key_bias) {
    qkv = matmul("qkv", x, model_.hidden, qkv_width(), {kWhole, tensor()});
    if (model_.has_qkv_bias()) fused_bias("qkv", qkv, qkv_width(), tensor());
  } else {
    qkv = separate_heads("qkv", x, {"query", "key", "value"});
  }
  qkv = adapted(AdapterTarget::kQkv, "qkv", qkv, x, {kWhole, tensor()});
  begin(LayerPart::kQkv);
  qkv = qk_norm(qkv);
  begin(LayerPart::kRope);
  if (model_.positions == Positions::kRotary && !kind_.unrotated)
    qkv = added({.type = "rope",
                 .name = "rope",
                 .inputs = {qkv},
                 .settings = with_heads({{"eager", eager(options_.pointwise.rope)}})});
  return context().empty() ? packed_attention(qkv) : attention_on_parts(qkv);
}

// Projections to latents are whole on every rank; projections from latents are split by heads.
// Source: DeepSeek-AI, "DeepSeek-V2", arXiv 2405.04434, section 2.1; NVIDIA/Megatron-LM,
// megatron/core/transformer/multi_latent_attention.py.
TensorId BlockBuilder::latent_attention(TensorId x) {
  const std::int64_t rank = model_.key_value_rank;
  const std::int64_t rotary = model_.rotary_dim;
  const std::int64_t queries_width = model_.heads * model_.head_size();
  TensorId queries = x;
  begin(LayerPart::kQkv);
  if (model_.query_rank > 0)
    queries = norm("query_norm",
                   matmul("query_down", x, model_.hidden, model_.query_rank, {kWhole, kWhole}));
  begin(LayerPart::kQkv);
  queries =
      matmul("query_up", queries, graph_[queries].shape.back(), queries_width, {kWhole, tensor()});
  const auto latents = all_added(
      {.type = "split",
       .name = "key_value_latents",
       .inputs = {matmul("key_value_down", x, model_.hidden, rank + rotary, {kWhole, kWhole})},
       .settings = {{"axis", std::int64_t{2}}, {"sizes", std::vector{rank, rotary}}},
       .output_names = {"key_value_latent", "rotary_key"}});
  const std::int64_t own_width = model_.head_size() - rotary + model_.value_dim;
  const TensorId keys = matmul("key_value_up", norm("key_value_norm", latents[0]), rank,
                               model_.heads * own_width, {kWhole, tensor()});
  Settings widths{{"heads", model_.heads},
                  {"rotary_dim", rotary},
                  {"value_dim", model_.value_dim},
                  {"eager", eager(options_.pointwise.rope)}};
  Settings settings = attention_settings();
  settings.set("value_dim", model_.value_dim);
  return context_attention(all_added({.type = "latent_heads",
                                      .name = "latent_heads",
                                      .inputs = {queries, keys, latents[1]},
                                      .settings = std::move(widths),
                                      .output_names = {"queries", "keys_values"}}),
                           std::move(settings));
}

TensorId BlockBuilder::attention_branch(TensorId x) {
  const TensorId heads = model_.has_latents() ? latent_attention(x) : projected_attention(x);
  const TensorId out =
      matmul("attention_out", heads, attention_width(), model_.hidden, {tensor(), kWhole});
  return adapted(AdapterTarget::kAttentionOut, "attention_out", out, heads, {tensor(), kWhole});
}

TensorId BlockBuilder::adapted(AdapterTarget target, const std::string& name, TensorId y,
                               TensorId x, const std::vector<std::vector<Axis>>& dims) {
  if (!model_.has_adapter(target)) return y;
  begin(LayerPart::kAdapters);
  const auto product = [&](const std::string& part, TensorId of, std::int64_t out,
                           std::vector<std::vector<Axis>> split) {
    const TensorId weight =
        parameter(name + part + ".weight", {graph_[of].shape.back(), out}, std::move(split));
    graph_[weight].frozen = false;
    return added({.type = "matmul", .name = name + part, .inputs = {of, weight}});
  };
  if (model_.adapters->dropout)
    x = added({.type = "dropout",
               .name = name + ".adapter_dropout",
               .inputs = {x},
               .settings = {{"rate", kDropoutRate}, {"fused", true}},
               .output_names = {name + ".adapter_dropout", name + ".adapter_mask"}});
  const bool by_rows = !dims.front().empty();
  const TensorId narrow =
      product(".adapter_in", x, model_.adapters->rank, {dims.front(), by_rows ? kWhole : tensor()});
  const TensorId wide = product(".adapter_out", narrow, graph_[y].shape.back(), {kWhole, tensor()});
  const TensorId scaled =
      added({.type = "unary",
             .name = name + ".adapter_scale",
             .inputs = {wide},
             .settings = {{"operation", std::string("scale")}, {"value", kAdapterScale}}});
  const TensorId both = sum(name + ".adapted", y, scaled);
  return by_rows ? at_boundary(both) : both;
}

}  // namespace foreshard::internal
