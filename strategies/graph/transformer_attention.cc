// The attention branch of a layer.
#include <cmath>

#include "strategies/graph/internal/block_builder.h"

namespace foreshard::internal {

TensorId BlockBuilder::attention(TensorId qkv) {
  if (options_.attention == AttentionImplementation::kUnfused) return unfused_attention(qkv);
  begin(Part::kCoreAttention);
  const TensorId heads = added({.type = "packed_attention",
                                .name = "attention",
                                .inputs = {qkv},
                                .settings = with_heads(attention_settings()),
                                .output_names = {"context", "attention.logsumexp"}});
  begin(Part::kAttentionOut);
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
  begin(Part::kCoreAttention);
  const TensorId heads = added({.type = "context_attention",
                                .name = "attention",
                                .inputs = parts,
                                .settings = std::move(settings),
                                .output_names = {"context", "attention.logsumexp"}});
  begin(Part::kAttentionOut);
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
  begin(Part::kCoreAttention);
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
  begin(Part::kAttentionOut);
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
  begin(Part::kQkv);
  TensorId qkv = matmul("qkv", x, model_.hidden, qkv_width(), {kWhole, tensor()});
  if (model_.has_qkv_bias()) fused_bias("qkv", qkv, qkv_width(), tensor());
  qkv = adapted(AdapterTarget::kQkv, "qkv", qkv, x, {kWhole, tensor()});
  begin(Part::kQkv);
  qkv = qk_norm(qkv);
  begin(Part::kRope);
  if (model_.positions == Positions::kRotary)
    qkv = added({.type = "rope",
                 .name = "rope",
                 .inputs = {qkv},
                 .settings = with_heads({{"eager", eager(options_.pointwise.rope)}})});
  const TensorId heads = context().empty() ? attention(qkv) : attention_on_parts(qkv);
  const TensorId out =
      matmul("attention_out", heads, attention_width(), model_.hidden, {tensor(), kWhole});
  return adapted(AdapterTarget::kAttentionOut, "attention_out", out, heads, {tensor(), kWhole});
}

}  // namespace foreshard::internal
