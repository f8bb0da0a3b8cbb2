/// \file
/// Which operators of a transformer's layer a CUDA graph can launch together, so that the host
/// launches one graph instead of their kernels one by one.
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
  kAttention,  ///< From the norm before attention to the sum with the stream.
  kMlp,        ///< Likewise of a dense feed-forward layer.
  kRouter,     ///< From the norm before the router to the choice of experts.
  kMamba,      ///< As kAttention, of a Mamba layer.
  /// All passes of a step. What is not of a layer (communication of gradients and parameters, the
  /// optimizer) is launched as ever, but the framework is taken to do nothing else for it.
  kStep,
};

/// Those that can be named: all but kNone.
const yaml::Names<Capture>& yaml_names(const Capture*);

/// What the model has no layers of, so that there is nothing to capture; empty: it has some.
std::string_view lacking(const Model& model, Capture one);

/// Of a word of Megatron-LM's cuda_graph_scope; nothing for others (moe_preprocess goes with
/// moe_router).
std::optional<Capture> find_megatron_scope(std::string_view word);
/// The other way round; empty for kNone.
std::string_view megatron_scope(Capture one);

/// Whether what can be captured as `one` is where `captured` is.
bool is_captured(Capture one, const std::vector<Capture>& captured);

}  // namespace foreshard
