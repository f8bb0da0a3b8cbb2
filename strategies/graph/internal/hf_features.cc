#include <algorithm>
#include <fmt/format.h>

#include "strategies/graph/internal/hf_types.h"

namespace foreshard::internal {
namespace {

constexpr const char* kExperts = "a mixture of experts";
constexpr const char* kStates = "state-space layers";
constexpr const char* kRecurrent = "recurrent layers";
constexpr const char* kLatent = "attention with latent keys and values";
constexpr const char* kVision = "a vision tower";
constexpr const char* kAudio = "an audio tower";
constexpr const char* kCross = "an encoder beside the decoder, with cross-attention between them";
constexpr const char* kEncoder = "a bidirectional encoder";
constexpr const char* kShared = "layers that share their parameters";
constexpr const char* kPairs = "two encoders and a loss over all pairs of the samples of all ranks";
constexpr const char* kFiltering = "convolutions over neighbouring tokens before attention";
constexpr const char* kPrefix = "a prefix that attention sees in both directions";

// A key that shows a feature, if it exists (a number: and is above `above`; a flag: and is true).
struct Sign {
  const char* key;
  const char* feature;
  double above = 0;
  bool is_read = false;  ///< No obstacle for types with an encoder, images or sound.
};

constexpr Sign kSigns[]{
    {"num_local_experts", kExperts, 1},
    {"num_experts", kExperts, 1},
    {"n_routed_experts", kExperts, 1},
    {"moe_num_experts", kExperts, 1},
    {"num_moe_experts", kExperts, 1},
    {"kv_lora_rank", kLatent},
    {"mamba_d_state", kStates},
    {"ssm_state_size", kStates},
    {"ssm_cfg", kStates},
    {"state_size", kStates},
    {"lru_width", kRecurrent},
    {"linear_num_key_heads", kRecurrent},
    {"is_encoder_decoder", kCross, 0, true},
    {"vision_config", kVision},
    {"vision_tower", kVision},
    {"mm_vision_tower", kVision},
    {"visual", kVision},
    {"img_processor", kVision},
    {"patch_size", kVision, 0, true},
    {"audio_config", kAudio},
    {"audio_processor", kAudio},
    {"num_mel_bins", kAudio, 0, true},
    {"position_encoding_2d", kPrefix},
    {"dense_attention_every_n_layers", "block-sparse attention"},
};

// Model types with a feature that no key shows.
struct TypeSign {
  std::string_view types;  ///< Names with blanks around each.
  const char* feature;
};

constexpr TypeSign kTypeSigns[]{
    {" roberta xlm-roberta distilbert electra camembert deberta deberta-v2 mpnet "
     "megatron-bert mobilebert modernbert squeezebert longformer big_bird layoutlm ernie esm "
     "roformer nomic_bert xlm ",
     kEncoder},
    {" rwkv rwkv5 rwkv6 rwkv7 xlstm ", kRecurrent},
    {" mamba mamba2 ", kStates},
    {" yuan ", kFiltering},
    {" albert ", kShared},
    {" clip siglip siglip2 align chinese_clip ", kPairs},
    {" mt5 umt5 bart mbart pegasus marian ", kCross},
};

bool shows(const nlohmann::json& value, double above) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() > above;
  return !value.empty();
}

}  // namespace

std::vector<std::string> unmodelled_features(const HfKeys& keys, std::string_view model_type,
                                             bool reads_experts, bool reads_latents,
                                             bool reads_states, bool reads_towers) {
  std::vector<std::string> features;
  const auto add = [&](const char* feature, std::string_view key) {
    const bool known = std::ranges::any_of(
        features, [&](const std::string& each) { return each.starts_with(feature); });
    if (!known) features.push_back(key.empty() ? feature : fmt::format("{} ('{}')", feature, key));
  };
  for (const Sign& sign : kSigns) {
    if (reads_experts && sign.feature == kExperts) continue;
    if (reads_latents && sign.feature == kLatent) continue;
    if (reads_states && sign.feature == kStates) continue;
    if (reads_towers && sign.is_read) continue;
    const auto* value = keys.find(sign.key);
    if (value != nullptr && shows(*value, sign.above)) add(sign.feature, sign.key);
  }
  if (!reads_experts && keys.find_in("ffn_config", "moe_num_experts") != nullptr)
    add(kExperts, "ffn_config.moe_num_experts");
  if (features.empty() && keys.find("text_config") != nullptr)
    add("several models in one", "text_config");
  const auto* architectures = keys.find("architectures");
  if (!reads_towers && architectures != nullptr && architectures->is_array()) {
    for (const auto& each : *architectures)
      if (each.is_string() && each.get<std::string>().ends_with("ForMaskedLM"))
        add(kEncoder, "architectures");
  }
  for (const TypeSign& sign : kTypeSigns)
    if (!(reads_states && sign.feature == kStates) &&
        sign.types.find(fmt::format(" {} ", model_type)) != std::string_view::npos)
      add(sign.feature, "");
  return features;
}

}  // namespace foreshard::internal
