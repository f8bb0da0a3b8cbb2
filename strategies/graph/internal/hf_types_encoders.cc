// Encoders, and decoders with an encoder: BERT, ViT, T5, Whisper.
#include <fmt/format.h>

#include "strategies/graph/internal/hf_types.h"

namespace foreshard::internal {
namespace {

constexpr std::string_view kEncoderActivations =
    " gelu gelu_new gelu_fast gelu_python gelu_pytorch_tanh relu relu2 ";

// The class that the file names, or else `otherwise`.
std::string class_of(const HfKeys& keys, std::string otherwise) {
  const auto* list = keys.find("architectures");
  if (list == nullptr || !list->is_array() || list->empty() || !list->front().is_string())
    return otherwise;
  return list->front().get<std::string>();
}

// The number of output classes. Transformers writes their names, or no names if there are two.
std::int64_t count_of_classes(HfKeys& keys) {
  const auto* names = keys.find("id2label");
  if (names != nullptr && names->is_object() && !names->empty())
    return static_cast<std::int64_t>(names->size());
  return keys.size({"num_labels", 2});
}

HfType encoder(std::string_view name) {
  return {.name = name,
          .layers = {"num_hidden_layers", 12},
          .hidden = {"hidden_size", 768},
          .heads = {"num_attention_heads", 12},
          .kv_heads = {},
          .head_dim = {},
          .ffn = {"intermediate_size", 3072},
          .vocabulary = {},
          .longest = {},
          .activation = "hidden_act",
          .activations = kEncoderActivations,
          .rest = Model{},
          .dropouts = "hidden_dropout_prob attention_probs_dropout_prob",
          .towers = true};
}

// Source: huggingface/transformers, models/bert/modeling_bert.py.
void finish_bert(HfKeys& keys, Model& model) {
  model.causal = false;
  model.embedding_norm = true;
  model.norm_places = NormPlaces::kAfterSum;
  model.token_types = keys.size({"type_vocab_size", 2});
  if (keys.flag("is_decoder", false))
    keys.refuse("'is_decoder' is true: BERT as a decoder is not modelled");
  const auto* positions = keys.find("position_embedding_type");
  if (positions != nullptr && *positions != "absolute")
    keys.refuse(
        fmt::format("'position_embedding_type' is {}, not \"absolute\", which is not modelled",
                    positions->dump()));
  const std::string name = class_of(keys, "BertForPreTraining");
  const bool tells_classes = name == "BertForSequenceClassification";
  const bool predicts = !tells_classes && name != "BertModel";
  model.pooler = name != "BertForMaskedLM";
  model.head = predicts ? Head::kMasked : Head::kNone;
  model.head_bias = predicts;
  if (!predicts) model.tied_embeddings = true;
  if (tells_classes) model.classes = count_of_classes(keys);
  if (name == "BertForPreTraining") model.classes = 2;  // whether one segment follows the other
}

HfType bert() {
  HfType type = encoder("bert");
  type.vocabulary = {"vocab_size", 30522};
  type.longest = {"max_position_embeddings", 512};
  type.classes = "BertForPreTraining BertForMaskedLM BertModel BertForSequenceClassification";
  type.more = finish_bert;
  return type;
}

// Source: huggingface/transformers, models/vit/modeling_vit.py.
void finish_vit(HfKeys& keys, Model& model) {
  model.causal = false;
  model.head = Head::kNone;
  model.tied_embeddings = true;
  model.image = Image{.size = keys.size({"image_size", 224}),
                      .patch = keys.size({"patch_size", 16}),
                      .channels = keys.size({"num_channels", 3})};
  if (!keys.flag("qkv_bias", true)) {
    model.bias = false;
    model.attention_out_bias = model.mlp_bias = true;
  }
  const bool tells_classes = class_of(keys, "ViTForImageClassification") != "ViTModel";
  model.pooler = !tells_classes;
  if (tells_classes) model.classes = count_of_classes(keys);
}

HfType vit() {
  HfType type = encoder("vit");
  type.rest.dropout = false;
  type.classes = "ViTForImageClassification ViTModel";
  type.more = finish_vit;
  return type;
}

// Source: huggingface/transformers, models/t5/configuration_t5.py and modeling_t5.py.
void finish_t5(HfKeys& keys, Model& model) {
  const std::int64_t encoder = model.layers;
  model.layers += keys.size({"num_decoder_layers", encoder});
  model.encoder = Encoder{.layers = encoder, .sequence = keys.size({"n_positions", 512})};
  const auto* words = keys.find("feed_forward_proj");
  const std::string activation =
      words != nullptr && words->is_string() ? words->get<std::string>() : "relu";
  if (activation.starts_with("gated-"))
    model.activation = Activation::kSwiglu;
  else if (activation != "relu" && activation != "gelu")
    keys.refuse(
        fmt::format("'feed_forward_proj' is '{}', which is not modelled; modelled are relu, "
                    "gelu, gated-gelu and gated-silu",
                    activation));
  if (const std::int64_t rows = keys.size({"relative_attention_num_buckets", kRelativeBuckets});
      rows != kRelativeBuckets)
    keys.refuse(fmt::format("'relative_attention_num_buckets' is {}, not {}, which is not modelled",
                            rows, kRelativeBuckets));
}

HfType t5() {
  HfType type = encoder("t5");
  type.layers = {"num_layers num_hidden_layers", 6};
  type.hidden = {"d_model hidden_size", 512};
  type.heads = {"num_heads num_attention_heads", 8};
  type.head_dim = {"d_kv", 64};
  type.ffn = {"d_ff", 2048};
  type.vocabulary = {"vocab_size", 32128};
  type.activation = nullptr;
  type.rest.norm = Norm::kRmsNorm;
  type.rest.bias = false;
  type.rest.positions = Positions::kRelative;
  type.dropouts = "dropout_rate";
  type.classes = "T5ForConditionalGeneration T5WithLMHeadModel";
  type.more = finish_t5;
  return type;
}

// Source: huggingface/transformers, models/whisper/modeling_whisper.py.
void finish_whisper(HfKeys& keys, Model& model) {
  const std::int64_t decoder = keys.size({"decoder_layers", 4});
  model.encoder = Encoder{.layers = model.layers,
                          .sequence = keys.size({"max_source_positions", 1500}),
                          .mel_bins = keys.size({"num_mel_bins", 80})};
  model.layers += decoder;
  model.tied_embeddings = true;
  const auto same = [&](const char* key, std::int64_t ours) {
    if (keys.size({key, ours}) != ours)
      keys.refuse(
          fmt::format("'{}' is not that of the encoder, {}, which is not modelled", key, ours));
  };
  same("decoder_attention_heads", model.heads);
  same("decoder_ffn_dim", model.ffn);
}

HfType whisper() {
  HfType type = encoder("whisper");
  type.layers = {"encoder_layers", 4};
  type.hidden = {"d_model", 384};
  type.heads = {"encoder_attention_heads", 6};
  type.ffn = {"encoder_ffn_dim", 1536};
  type.vocabulary = {"vocab_size", 51865};
  type.longest = {"max_target_positions", 448};
  type.activation = "activation_function";
  type.rest.key_bias = false;
  type.rest.dropout = false;
  type.dropouts = "dropout attention_dropout";
  type.classes = "WhisperForConditionalGeneration";
  type.more = finish_whisper;
  return type;
}

}  // namespace

std::vector<HfType> encoder_types() {
  return {bert(), vit(), t5(), whisper()};
}

}  // namespace foreshard::internal
