// The YAML tables of Hugging Face model types (configs/huggingface/): which keys of a config.json
// give which property of a model. In the docs of the keys "the file" is the config.json. The reader
// of config.json (hf_config.cc, internal/hf_rules.cc) follows these types.
#include "strategies/graph/hf_type.h"

#include <algorithm>
#include <string_view>

namespace foreshard {
namespace {

constexpr double kLargestSize = 1LL << 40;

// The fault of a size that something is divided by: its default is 0. Empty if there is none.
std::string fault_in(const HfSize& size) {
  return size.otherwise > 0 ? "" : "needs a default of at least 1";
}

// Calls `visit` with the key of each trait, the trait and the member of Model that it sets.
template <class Visit>
void each_trait(const Visit& visit) {
  visit("norm", &HfTraits::norm, &Model::norm);
  visit("activation", &HfTraits::activation, &Model::activation);
  visit("positions", &HfTraits::positions, &Model::positions);
  visit("norm_places", &HfTraits::norm_places, &Model::norm_places);
  visit("branches", &HfTraits::branches, &Model::branches);
  visit("qk_norm", &HfTraits::qk_norm, &Model::qk_norm);
  visit("router", &HfTraits::router, &Model::router);
  visit("head", &HfTraits::head, &Model::head);
  visit("bias", &HfTraits::bias, &Model::bias);
  visit("qkv_bias", &HfTraits::qkv_bias, &Model::qkv_bias);
  visit("attention_bias", &HfTraits::attention_bias, &Model::attention_bias);
  visit("key_bias", &HfTraits::key_bias, &Model::key_bias);
  visit("attention_out_bias", &HfTraits::attention_out_bias, &Model::attention_out_bias);
  visit("mlp_bias", &HfTraits::mlp_bias, &Model::mlp_bias);
  visit("head_bias", &HfTraits::head_bias, &Model::head_bias);
  visit("router_bias", &HfTraits::router_bias, &Model::router_bias);
  visit("embedding_norm", &HfTraits::embedding_norm, &Model::embedding_norm);
  visit("tied_embeddings", &HfTraits::tied_embeddings, &Model::tied_embeddings);
  visit("dropout", &HfTraits::dropout, &Model::dropout);
  visit("sinks", &HfTraits::sinks, &Model::sinks);
  visit("clamped_activation", &HfTraits::clamped_activation, &Model::clamped_activation);
  visit("shared_gate", &HfTraits::shared_gate, &Model::shared_gate);
  visit("causal", &HfTraits::causal, &Model::causal);
  visit("pooler", &HfTraits::pooler, &Model::pooler);
  visit("kv_heads", &HfTraits::kv_heads, &Model::kv_heads);
  visit("expert_groups", &HfTraits::expert_groups, &Model::expert_groups);
  visit("groups_per_token", &HfTraits::groups_per_token, &Model::groups_per_token);
  visit("classes", &HfTraits::classes, &Model::classes);
}

// The doc of the key in the YAML table of Model.
std::string doc_of(std::string_view key) {
  const auto& fields = yaml_table(static_cast<const Model*>(nullptr)).fields().fields;
  const auto place =
      std::ranges::find_if(fields, [&](const auto& each) { return each.key == key; });
  FORESHARD_CHECK(place != fields.end());
  return place->doc;
}

}  // namespace

void apply(const HfTraits& traits, Model& model) {
  each_trait([&](const char*, auto trait, auto member) {
    if (traits.*trait) model.*member = *(traits.*trait);
  });
}

const yaml::Names<HfFinish>& yaml_names(const HfFinish*) {
  static const yaml::Names<HfFinish> names{
      {"none", HfFinish::kNone, "The keys of the type say everything."},
      {"qwen", HfFinish::kQwen, "'intermediate_size' is the width of gate and up together."},
      {"qwen-moe", HfFinish::kQwenMoe, "'mlp_only_layers' lists layers without experts."},
      {"falcon", HfFinish::kFalcon, "Key heads and norms follow 'new_decoder_architecture'."},
      {"mpt", HfFinish::kMpt,
       "The feed-forward layer is 'expansion_ratio' times as wide as the "
       "stream; 'attn_config' has the key heads."},
      {"opt", HfFinish::kOpt,
       "'word_embed_proj_dim' must be the width of the layers ('hidden_size')."},
      {"whisper", HfFinish::kWhisper, "The decoder's heads and width must be the encoder's."},
      {"nemotron-h", HfFinish::kNemotronH,
       "'hybrid_override_pattern' or 'layers_block_type' says what each layer is."},
      {"mamba2", HfFinish::kMamba2, "All layers are Mamba layers."},
  };
  return names;
}

const yaml::Table<HfSize>& yaml_table(const HfSize*) {
  static const auto table =
      yaml::Table<HfSize>("size key", "A size that a config.json gives.")
          .optional("key", &HfSize::key,
                    "The key, or a list of keys: the first that the file has gives the size "
                    "(default: no key gives it). a.b is key b inside the object a.")
          .optional("default", &HfSize::otherwise,
                    "The size where the file lacks the key or says null.",
                    yaml::between(0, kLargestSize));
  return table;
}

const yaml::Table<HfTraits>& yaml_table(const HfTraits*) {
  static const auto table = [] {
    yaml::Table<HfTraits> traits(
        "traits", "Properties of a model, with the keys that a model's own YAML has.");
    each_trait([&](const char* key, auto trait, auto) {
      static_cast<yaml::Table<HfTraits>&&>(traits).optional(key, trait, doc_of(key));
    });
    return traits;
  }();
  return table;
}

const yaml::Table<HfRule>& yaml_table(const HfRule*) {
  static const auto table =
      yaml::Table<HfRule>("rule", "What follows from the value of a key.")
          .required("key", &HfRule::key, "The key; a.b is key b inside the object a.",
                    yaml::non_empty())
          .optional("is", &HfRule::is,
                    "The value, or a list of values, that the rule is for (default: true).")
          .optional("unless", &HfRule::unless,
                    "Instead of `is`: the rule is for every other value than these.")
          .optional("default", &HfRule::otherwise,
                    "The value where the file lacks the key (default: the rule does not hold).")
          .optional("model", &HfRule::model, "Properties that the model then has.")
          .optional("refuse", &HfRule::refuse,
                    "Why a file to which the rule applies is refused: the text after the key in "
                    "the message, in which {value} stands for the value.")
          .check("unless", [](const HfRule& rule) {
            return rule.is && rule.unless ? "is given beside 'is'; leave out one of them" : "";
          });
  return table;
}

const yaml::Table<HfClass>& yaml_table(const HfClass*) {
  static const auto table =
      yaml::Table<HfClass>("class", "A class of Transformers, as 'architectures' names it.")
          .required("name", &HfClass::name, "Its name.", yaml::non_empty())
          .optional("model", &HfClass::model, "Properties that its models have.")
          .optional("labels", &HfClass::labels,
                    "Whether the model is a classifier, whose output classes 'id2label' or "
                    "'num_labels' gives.");
  return table;
}

const yaml::Table<HfActivation>& yaml_table(const HfActivation*) {
  static const auto table =
      yaml::Table<HfActivation>("activation key", "The key of the activation.")
          .optional("key", &HfActivation::key,
                    "The key, or a list of keys: the first that the file has is read.")
          .optional("words", &HfActivation::words,
                    "Values of the key whose kernels are those of the model's activation; other "
                    "values are refused.");
  return table;
}

const yaml::Table<HfMamba>& yaml_table(const HfMamba*) {
  static const auto table =
      yaml::Table<HfMamba>("mamba sizes", "The sizes of Mamba layers.")
          .required("heads", &HfMamba::heads, "Heads.")
          .required("head_dim", &HfMamba::head_dim, "Channels of a head.")
          .required("groups", &HfMamba::groups, "Groups of heads that share B and C.")
          .required("state", &HfMamba::state, "Columns of the state of one head.")
          .required("conv", &HfMamba::conv, "Width of the convolution over tokens.")
          .required("chunk", &HfMamba::chunk, "Tokens in one chunk of the scan.")
          .check("groups", [](const HfMamba& mamba) { return fault_in(mamba.groups); });
  return table;
}

const yaml::Table<HfEncoder>& yaml_table(const HfEncoder*) {
  static const auto table =
      yaml::Table<HfEncoder>("encoder sizes", "The sizes of an encoder before a decoder.")
          .required("decoder_layers", &HfEncoder::decoder_layers,
                    "Layers of the decoder; 0: as many as the encoder has.")
          .required("sequence", &HfEncoder::sequence, "Tokens that the encoder reads.")
          .optional("mel_bins", &HfEncoder::mel_bins,
                    "Values of a frame of sound (default: the encoder reads tokens).");
  return table;
}

const yaml::Table<HfImage>& yaml_table(const HfImage*) {
  static const auto table =
      yaml::Table<HfImage>("image sizes", "The sizes of images that are read in place of tokens.")
          .required("size", &HfImage::size, "Pixels of a side.")
          .required("patch", &HfImage::patch, "Pixels of a side of the square that is a token.")
          .required("channels", &HfImage::channels, "Values of a pixel.")
          .check("patch", [](const HfImage& image) { return fault_in(image.patch); });
  return table;
}

const yaml::Table<HfType>& yaml_table(const HfType*) {
  using T = HfType;
  static const auto table =
      yaml::Table<T>("model_type", "A model type of Hugging Face Transformers.")
          .folder("huggingface")
          .required("name", &T::name,
                    "The model_type, as messages name it. A YAML file with only `extends` is "
                    "another name of the type.",
                    yaml::non_empty())
          .optional("source", &T::source, "Where keys and defaults are published.")
          .required("layers", &T::layers, "Layers; with `encoder`, those of the encoder.")
          .required("hidden", &T::hidden, "Width of the residual stream.")
          .optional("heads", &T::heads, "Attention heads (default: there is no attention).")
          .optional("kv_heads", &T::kv_heads,
                    "Key and value heads; 0: as many as heads (default: 0).")
          .optional("head_dim", &T::head_dim, "Width of a head; 0: hidden / heads (default: 0).")
          .optional("ffn", &T::ffn, "Width of the feed-forward layer; 0: 4 x hidden (default: 0).")
          .optional("vocabulary", &T::vocabulary,
                    "Tokens in the vocabulary (default: images are read in their place).")
          .optional("longest", &T::longest,
                    "Largest number of positions; with a default of 0, files without the key have "
                    "no limit (without this size: no file has a limit).")
          .optional("further_positions", &T::further_positions,
                    "Rows that the table of positions has beyond `longest`.", yaml::at_least(0))
          .optional("activation", &T::activation,
                    "The key of the activation (default: no key changes it).")
          .optional("model", &T::model, "Properties of the type's models.")
          .optional("dropouts", &T::dropouts,
                    "Keys of dropout, which is applied if one of them is above 0.")
          .optional("clamps", &T::clamps,
                    "Keys of limits on the inputs of a SwiGLU, which are clamped if one of the "
                    "limits is above 0.")
          .optional("stated_biases", &T::stated_biases,
                    "Those of attention_bias and mlp_bias that the type's configuration has; a "
                    "file where the other is true is refused.",
                    yaml::one_of({"attention_bias", "mlp_bias"}))
          .optional("window", &T::window,
                    "Tokens of sliding attention where the file has no 'sliding_window'; 0: none.",
                    yaml::at_least(0))
          .optional("slides", &T::slides,
                    "Whether a window is used where the file has no 'use_sliding_window'.")
          .optional("full_layers", &T::full_layers,
                    "Number of first layers with full attention, where the file has no "
                    "'max_window_layers'.",
                    yaml::at_least(0))
          .optional("beyond_window", &T::beyond_window,
                    "Tokens that attention sees in addition to 'sliding_window'.",
                    yaml::at_least(0))
          .optional("chunk", &T::chunk,
                    "Tokens of chunked attention where the file has no 'attention_chunk_size'; 0: "
                    "none.",
                    yaml::at_least(0))
          .optional("full_interval", &T::full_interval,
                    "The last of every so many layers sees the whole sequence (default: none).")
          .optional("unrotated", &T::unrotated,
                    "The last of every so many layers has no rotary positions (default: all have "
                    "them).")
          .optional("alternating_window", &T::alternating_window,
                    "Window, in tokens, of the second, fourth ... layer; the others see the whole "
                    "sequence (default: none).")
          .optional("experts", &T::experts, "Routed experts of a layer (default: none).")
          .optional("experts_per_token", &T::experts_per_token,
                    "Experts that each token is routed to (default: 1).")
          .optional("expert_groups", &T::expert_groups,
                    "Equal groups that the experts form (default: 1).")
          .optional("groups_per_token", &T::groups_per_token,
                    "Largest number of groups that the experts of one token are in (default: 1).")
          .optional("expert_ffn", &T::expert_ffn,
                    "Width of one routed expert (default: that of ffn).")
          .optional(
              "shared_ffn", &T::shared_ffn,
              "Width of all shared experts together, through which every token goes (default: "
              "none).")
          .optional("shared_experts", &T::shared_experts,
                    "Instead of shared_ffn: how many there are, each of width expert_ffn.")
          .optional("dense_layers", &T::dense_layers,
                    "The first so many layers have no experts (default: 0).")
          .optional("expert_interval", &T::expert_interval,
                    "The last of every so many layers has experts (default: 1).")
          .optional("key_value_rank", &T::key_value_rank,
                    "Width of the latents of keys and values (default: there are none).")
          .optional("query_rank", &T::query_rank,
                    "Width of the latents of queries; where the file says null, there are none.")
          .optional("rotary_dim", &T::rotary_dim, "With latents: columns of a head that rotate.")
          .optional("unrotated_dim", &T::unrotated_dim,
                    "With latents: columns of a head that do not rotate.")
          .optional("value_dim", &T::value_dim, "With latents: width of a head of the values.")
          .optional("mamba", &T::mamba, "Mamba layers (default: there are none).")
          .optional("encoder", &T::encoder,
                    "An encoder before the decoder (default: there is none).")
          .optional("image", &T::image,
                    "Images that are read in place of tokens (default: tokens are).")
          .optional("token_types", &T::token_types,
                    "Rows of a table of the types of tokens (default: there is none).")
          .optional(
              "classes", &T::classes,
              "The Transformers classes of the type that are modelled; the first is the class "
              "of a file without 'architectures' (default: every file is read as a decoder "
              "with a language-model head).")
          .optional("rules", &T::rules,
                    "What follows from other keys. Rules apply in their order; a later one may "
                    "change what an earlier one set.")
          .optional("finish", &T::finish, "Code for what the keys of the type cannot say.")
          .check("layers", [](const T& type) { return fault_in(type.layers); })
          .check("hidden", [](const T& type) { return fault_in(type.hidden); });
  return table;
}

}  // namespace foreshard
