/// \file
/// The model types of Transformers whose config.json foreshard reads, as data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "strategies/graph/internal/hf_keys.h"
#include "strategies/graph/model.h"

namespace foreshard::internal {

struct HfType {
  std::string_view name;  ///< Names of the type, separated by blanks; they mean the same.
  // Default 0: Model's own default (heads for kv_heads, hidden / heads for head_dim, 4 x hidden for
  // ffn).
  Size layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary;
  /// Maximum number of positions. Default 0: no limit unless the file states one.
  Size longest;
  std::int64_t further_positions = 0;  ///< Rows of the table of positions beyond `longest`.
  const char* activation;
  /// Values of the key `activation` with the same kernels as `rest.activation`, each with blanks
  /// around it.
  std::string_view activations;
  Model rest;                 ///< All fields that are not sizes.
  std::string_view dropouts;  ///< Keys of dropout rates, separated by blanks.
  bool states_attention_bias = false;
  bool states_mlp_bias = false;
  std::int64_t window = 0;       ///< Sliding window if the file has no key; 0: none.
  bool slides = true;            ///< Whether a window is used if the file does not say.
  std::int64_t full_layers = 0;  ///< Layers before the first with a window, if the file has no key.
  /// Every N-th layer has no rotary positions; value 0: all layers have them.
  Size unrotated{};
  std::int64_t beyond_window = 0;  ///< Tokens that attention sees in addition to the window.
  /// Every N-th layer attends to the whole sequence; value 0: none does.
  Size full_interval{};
  std::int64_t chunk = 0;  ///< Chunk of chunked attention if the file has no key; 0: none.
  bool experts = false;    ///< `more` reads experts.
  bool latents = false;    ///< `more` reads latents of keys and values.
  bool states = false;     ///< `more` reads state-space layers.
  bool towers = false;     ///< `more` reads an encoder, images or sound.
  /// Classes of Transformers that `more` distinguishes, separated by blanks.
  std::string_view classes{};
  /// Reads what the keys above do not say; may be null.
  void (*more)(HfKeys& keys, Model& model) = nullptr;
};

HfType llama();  ///< Many other types are derived from it.
HfType qwen2();
/// Reads "mlp_only_layers" and "decoder_sparse_step" of Qwen's mixtures of experts.
void read_qwen_layers(HfKeys& keys, Model& model);

std::vector<HfType> llama_types();
std::vector<HfType> mixture_types();
std::vector<HfType> gpt_types();
std::vector<HfType> mamba_types();
std::vector<HfType> encoder_types();

/// Features that a file needs and foreshard does not model, each with the key that shows it: "a
/// mixture of experts ('num_experts')". Features that the model type reads (`reads_experts`,
/// `reads_latents`, `reads_states`, `reads_towers`) are left out. Empty if no such feature is
/// found.
std::vector<std::string> unmodelled_features(const HfKeys& keys, std::string_view model_type,
                                             bool reads_experts, bool reads_latents,
                                             bool reads_states, bool reads_towers);

}  // namespace foreshard::internal
