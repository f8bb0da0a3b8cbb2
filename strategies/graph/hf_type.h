/// \file
/// The model types of Hugging Face Transformers whose config.json foreshard reads. Each is a file
/// of the catalogue: configs/huggingface/<model_type>.yaml.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/yaml/table.h"

#include "strategies/graph/model.h"

namespace foreshard {

/// A size that a config.json gives.
struct HfSize {
  std::optional<yaml::Words> key{};  ///< If there are several, the first that the file states.
  std::int64_t otherwise = 0;        ///< The size where the file is silent or says null.

  std::vector<std::string> keys() const { return key ? key->words : std::vector<std::string>(); }
};

/// Properties of a model, named as in `Model`. A trait without a value leaves the model unchanged.
struct HfTraits {
  std::optional<Norm> norm{};
  std::optional<Activation> activation{};
  std::optional<Positions> positions{};
  std::optional<NormPlaces> norm_places{};
  std::optional<Branches> branches{};
  std::optional<QkNorm> qk_norm{};
  std::optional<Router> router{};
  std::optional<Head> head{};
  std::optional<bool> bias{};
  std::optional<bool> qkv_bias{};
  std::optional<bool> attention_bias{};
  std::optional<bool> key_bias{};
  std::optional<bool> attention_out_bias{};
  std::optional<bool> mlp_bias{};
  std::optional<bool> head_bias{};
  std::optional<bool> router_bias{};
  std::optional<bool> embedding_norm{};
  std::optional<bool> tied_embeddings{};
  std::optional<bool> dropout{};
  std::optional<bool> sinks{};
  std::optional<bool> clamped_activation{};
  std::optional<bool> shared_gate{};
  std::optional<bool> causal{};
  std::optional<bool> pooler{};
  std::optional<std::int64_t> kv_heads{};
  std::optional<std::int64_t> expert_groups{};
  std::optional<std::int64_t> groups_per_token{};
  std::optional<std::int64_t> classes{};
};

/// What follows from the value of a key.
struct HfRule {
  std::string key{};                       ///< "attn_config.alibi" is a key inside an object.
  std::optional<yaml::Words> is{};         ///< Values that the rule is for; default: true.
  std::optional<yaml::Words> unless{};     ///< Instead: the rule is for every other value.
  std::optional<std::string> otherwise{};  ///< The value where the file states none.
  HfTraits model{};
  /// Not empty: such a file is refused; this follows the key in the message.
  std::string refuse{};
};

/// A class of Transformers that is read as a model of its own.
struct HfClass {
  std::string name{};
  HfTraits model{};
  bool labels = false;  ///< A classifier: 'id2label' or 'num_labels' gives its classes.
};

struct HfActivation {
  std::optional<yaml::Words> key{};
  std::vector<std::string> words{};  ///< Activations with the kernels of the model's activation.
};

struct HfMamba {
  HfSize heads{}, head_dim{}, groups{}, state{}, conv{}, chunk{};
};

struct HfEncoder {
  HfSize decoder_layers{};  ///< 0: as many as the encoder has, which `HfType::layers` are.
  HfSize sequence{};
  HfSize mel_bins{};  ///< 0: the encoder reads tokens.
};

struct HfImage {
  HfSize size{}, patch{}, channels{};
};

/// What a model type needs beyond its data (internal/hf_finish.cc).
enum class HfFinish : std::uint8_t {
  kNone,
  kQwen,
  kQwenMoe,
  kFalcon,
  kMpt,
  kOpt,
  kWhisper,
  kNemotronH,
  kMamba2
};

struct HfType {
  std::string name{};  ///< The model_type in messages; a file that only extends has another's.
  std::string source{};
  HfSize layers{}, hidden{};
  // 0, or no size: as Model has it (heads for kv_heads, hidden / heads for head_dim, 4 x hidden
  // for ffn).
  std::optional<HfSize> heads{}, kv_heads{}, head_dim{}, ffn{}, vocabulary{};
  /// The most positions. A value of 0: there is a limit only where the file states one.
  std::optional<HfSize> longest{};
  std::int64_t further_positions = 0;  ///< Rows of the table of positions beyond `longest`.
  std::optional<HfActivation> activation{};
  HfTraits model{};
  std::vector<std::string> dropouts{};  ///< Keys: dropout is applied if one is above 0.
  std::vector<std::string> clamps{};    ///< Keys: what a SwiGLU reads is clamped if one is above 0.
  std::vector<std::string> stated_biases{};  ///< Keys of biases that the type's class has.

  std::int64_t window = 0;         ///< Sliding attention where the file has no key; 0: none.
  bool slides = true;              ///< Whether a window is used where the file does not say.
  std::int64_t full_layers = 0;    ///< Default number of first layers with full attention.
  std::int64_t beyond_window = 0;  ///< Tokens that attention sees beside those of the window.
  std::int64_t chunk = 0;          ///< Chunked attention where the file has no key; 0: none.
  std::optional<HfSize> full_interval{};  ///< The last of so many layers sees the sequence.
  std::optional<HfSize> unrotated{};      ///< The last of so many layers has no rotary positions.
  std::optional<HfSize> alternating_window{};  ///< Window of the layers 2, 4, ...

  std::optional<HfSize> experts{}, experts_per_token{}, expert_groups{}, groups_per_token{};
  std::optional<HfSize> expert_ffn{}, shared_ffn{}, dense_layers{}, expert_interval{};
  std::optional<HfSize> shared_experts{};  ///< Instead of shared_ffn: how many of expert_ffn.

  std::optional<HfSize> key_value_rank{}, query_rank{}, rotary_dim{}, unrotated_dim{}, value_dim{};

  std::optional<HfMamba> mamba{};
  std::optional<HfEncoder> encoder{};
  std::optional<HfImage> image{};
  std::optional<HfSize> token_types{};
  std::vector<HfClass> classes{};  ///< The first is that of a file which names none.
  std::vector<HfRule> rules{};     ///< Applied in order: later ones change what earlier ones set.
  HfFinish finish = HfFinish::kNone;
};

const yaml::Names<HfFinish>& yaml_names(const HfFinish*);
const yaml::Table<HfSize>& yaml_table(const HfSize*);
const yaml::Table<HfTraits>& yaml_table(const HfTraits*);
const yaml::Table<HfRule>& yaml_table(const HfRule*);
const yaml::Table<HfClass>& yaml_table(const HfClass*);
const yaml::Table<HfActivation>& yaml_table(const HfActivation*);
const yaml::Table<HfMamba>& yaml_table(const HfMamba*);
const yaml::Table<HfEncoder>& yaml_table(const HfEncoder*);
const yaml::Table<HfImage>& yaml_table(const HfImage*);
const yaml::Table<HfType>& yaml_table(const HfType*);

/// Gives the model the traits that have a value.
void apply(const HfTraits& traits, Model& model);

}  // namespace foreshard
