// The branch of a Mamba-2 layer (mamba.h).
#include "strategies/graph/internal/block_builder.h"

namespace foreshard::internal {

// The result of in_proj lies by group, so that ranks have whole groups: for each group the gates of
// its heads, their values, B, C and their steps. Megatron-LM instead packs all gates, all values
// and so on of a rank one after the other (megatron/core/ssm/mamba_mixer.py); a rank has the same
// number of columns either way.
// Not modelled: A, D and the bias of the steps in fp32; the backward pass of the fused kernel,
// which writes the gradients of gates, values and steps directly into one tensor (here they are
// copied into it).
TensorId BlockBuilder::mamba_branch(TensorId x) {
  const Mamba& mamba = *model_.mamba;
  const std::int64_t groups = mamba.groups;
  begin(LayerPart::kNone);
  const TensorId projected =
      matmul("mamba_in", x, model_.hidden, mamba.projected(), {kWhole, tensor()});
  begin(LayerPart::kMamba);
  const std::vector<std::int64_t> widths{mamba.width(), mamba.conv_width(), mamba.heads};
  std::vector<std::int64_t> of_group;
  of_group.reserve(widths.size());
  for (const std::int64_t width : widths) of_group.push_back(width / groups);
  std::vector<std::int64_t> by_group{options_.batch, model_.sequence, groups,
                                     mamba.projected() / groups};
  auto parts =
      all_added({.type = "split",
                 .name = "mamba_parts",
                 .inputs = {reshaped("mamba_groups", projected, std::move(by_group))},
                 .settings = {{"axis", std::int64_t{3}}, {"sizes", of_group}},
                 .output_names = {"mamba_gate.group", "mamba_x_b_c.group", "mamba_steps.group"}});
  const char* const names[]{"mamba_gate", "mamba_x_b_c", "mamba_steps"};
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i] = reshaped(names[i], parts[i], tokens(widths[i]));
  const auto of_heads = [&](const char* name) {
    return parameter(name, {mamba.heads}, {tensor()});
  };
  std::vector<TensorId> inputs{
      parts[1],
      parts[2],
      parameter("mamba_taps", {mamba.conv_width(), mamba.conv}, {tensor(), kWhole}),
      of_heads("mamba_a_log"),
      of_heads("mamba_steps.bias"),
      of_heads("mamba_d")};
  if (mamba.conv_bias)
    inputs.push_back(parameter("mamba_taps.bias", {mamba.conv_width()}, {tensor()}));
  const TensorId scanned = added({.type = "ssd_scan",
                                  .name = "mamba_scan",
                                  .inputs = std::move(inputs),
                                  .settings = {{"heads", mamba.heads},
                                               {"groups", groups},
                                               {"state", mamba.state},
                                               {"chunk", mamba.chunk}}});
  const TensorId normed = added(
      {.type = "gated_norm",
       .name = "mamba_norm",
       .inputs = {scanned, parts[0], parameter("mamba_norm.weight", {mamba.width()}, {tensor()})},
       .settings = {{"groups", groups}}});
  begin(LayerPart::kNone);
  return matmul("mamba_out", normed, mamba.width(), model_.hidden, {tensor(), kWhole});
}

// A layer of one branch: norm, branch, addition to the stream.
TensorId BlockBuilder::one_branch_layer(TensorId x, const std::string& output) {
  const bool is_mamba = kind_.mixer == Mixer::kMamba;
  const bool attends = kind_.mixer == Mixer::kAttention;
  capture(is_mamba ? Capture::kMamba : attends ? Capture::kAttention : feed_forward_capture());
  if (is_mamba)
    return join("mamba_residual", mamba_branch(norm("mamba_in_norm", x)), false, x, output);
  if (attends)
    return join("attention_residual", attention_branch(norm("attention_norm", x)),
                model_.has_attention_out_bias(), x, output);
  return join("mlp_residual", feed_forward(norm("mlp_norm", x)), has_feed_forward_bias(), x,
              output);
}

}  // namespace foreshard::internal
