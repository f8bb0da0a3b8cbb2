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
  std::string_view name;  ///< Several with blanks between, if they differ in name alone.
  // A value of 0: as Model has it (heads for kv_heads, hidden / heads for head_dim, 4 x hidden for
  // ffn).
  Size layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary;
  /// The most positions. Value 0: there is a limit only where the file states one.
  Size longest;
  std::int64_t further_positions = 0;  ///< Rows of the table of positions beyond those.
  const char* activation;
  std::string_view activations;  ///< Those that have the kernels of `rest.activation`, with blanks.
  Model rest;                    ///< All that is no size.
  std::string_view dropouts;     ///< Their keys.
  bool states_attention_bias = false;
  bool states_mlp_bias = false;
  std::int64_t window = 0;       ///< Of sliding attention where the file has no key; 0: none.
  bool slides = true;            ///< Whether a window is used where the file does not say.
  std::int64_t full_layers = 0;  ///< Layers before the first that slides, likewise.
  /// Each layer of this number and its multiples has no rotary positions; value 0: all have them.
  Size unrotated{};
  std::int64_t beyond_window = 0;  ///< Tokens that attention sees beside those of the window.
  /// Of every so many layers the last attends to the whole sequence; value 0: none does.
  Size full_interval{};
  std::int64_t chunk = 0;      ///< Of chunked attention where the file has no key; 0: none.
  bool experts = false;        ///< `more` reads them.
  bool latents = false;        ///< Likewise those of keys and values.
  bool states = false;         ///< Likewise state-space layers.
  bool towers = false;         ///< Likewise an encoder, images or sound.
  std::string_view classes{};  ///< Of Transformers, that `more` tells apart, with blanks between.
  /// What the keys above do not say.
  void (*more)(HfKeys& keys, Model& model) = nullptr;
};

HfType llama();  ///< What others differ from.
HfType qwen2();
/// The key "mlp_only_layers" beside "decoder_sparse_step", of Qwen's mixtures.
void read_qwen_layers(HfKeys& keys, Model& model);

std::vector<HfType> llama_types();
std::vector<HfType> mixture_types();
std::vector<HfType> gpt_types();
std::vector<HfType> mamba_types();
std::vector<HfType> encoder_types();

/// What a file needs that foreshard does not model, each with the key that says so: "a mixture of
/// experts ('num_experts')", unless `reads_experts`: models of the type have them, and are read.
/// `reads_latents`, `reads_states`, `reads_towers`: likewise.
/// Empty if nothing is known of that kind.
std::vector<std::string> unmodelled_features(const HfKeys& keys, std::string_view model_type,
                                             bool reads_experts, bool reads_latents,
                                             bool reads_states, bool reads_towers);

}  // namespace foreshard::internal
