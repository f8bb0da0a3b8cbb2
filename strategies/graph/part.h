/// \file
/// The parts of a transformer layer. Each operator belongs to one; recomputation selects by part,
/// and CUDA graphs capture several together.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/yaml/names.h"

namespace foreshard {

/// Parts in the order of a layer. Operators of general graphs, of the embedding and of the head
/// have kNone.
enum class LayerPart : std::uint8_t {
  kNone,
  kNorm,           ///< The norms around attention and the feed-forward layer.
  kQkv,            ///< The product that makes queries, keys and values, and their norms.
  kRope,           ///< The rotation of queries and keys.
  kCoreAttention,  ///< Scores, softmax, dropout, and the product with the values.
  kAttentionOut,   ///< The output projection of attention.
  kMlpGate,        ///< The product of the gate, if it is separate from kMlpUp.
  kMlpUp,
  kActivation,
  kMlpDown,
  kRouting,  ///< Choice of experts, dispatch of tokens, mixture of results.
  kExpertsUp,
  kExpertActivation,
  kExpertsDown,
  kSharedExperts,  ///< The shared experts (which every token passes), as a whole.
  kMamba,          ///< Convolution, scan and gated norm of a Mamba layer.
  kResidual,       ///< Addition of a branch to the stream, with bias and dropout.
  kAdapters,
};

/// Names of all values but kNone.
const yaml::Names<LayerPart>& yaml_names(const LayerPart*);

/// Whether recomputation of the part keeps the results that other parts read. True only for core
/// attention; all other parts drop their results, too, and recompute them for their readers.
/// Source: Megatron-LM, megatron/core/tensor_parallel/random.py (`checkpoint` of core attention,
/// `CheckpointWithoutOutput` of norms and activations).
bool keeps_results(LayerPart part);

struct Model;

/// Parts of a transformer layer that a CUDA graph can capture: the host then launches one graph
/// instead of many kernels.
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
