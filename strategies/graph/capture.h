/// \file
/// Parts of a transformer layer that a CUDA graph can capture: the host then launches one graph
/// instead of many kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/yaml/names.h"

namespace foreshard {

struct Model;

/// Source: NVIDIA/Megatron-LM, megatron/core/transformer/transformer_config.py (cuda_graph_scope:
/// attn, mlp, moe_router with moe_preprocess, mamba, full_iteration).
enum class Capture : std::uint8_t {
  kNone,
  kAttention,  ///< The attention branch, from its norm to the residual addition.
  kMlp,        ///< The branch of a dense feed-forward layer, from norm to residual addition.
  kRouter,     ///< Experts: the norm before the router up to the choice of experts.
  kMamba,      ///< A Mamba layer, from its norm to the residual addition.
  /// All passes of a step. Work outside the layers (communication of gradients and parameters, the
  /// optimizer) is still launched kernel by kernel, but without other work of the framework on the
  /// host.
  kStep,
};

/// Names of all values but kNone.
const yaml::Names<Capture>& yaml_names(const Capture*);

/// The kind of layer that capturing `one` needs and the model lacks; empty if it has such layers.
std::string_view lacking(const Model& model, Capture one);

/// The value for a word of Megatron-LM's cuda_graph_scope; nothing for other words (moe_preprocess
/// is a part of moe_router).
std::optional<Capture> find_megatron_scope(std::string_view word);
/// The word of cuda_graph_scope for `one`; empty for kNone.
std::string_view megatron_scope(Capture one);

/// Whether an operator that can be captured as `one` is captured if the strategy captures
/// `captured`.
bool is_captured(Capture one, const std::vector<Capture>& captured);

}  // namespace foreshard
