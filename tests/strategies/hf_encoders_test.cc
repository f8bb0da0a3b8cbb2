// Encoders, alone and before a decoder, from config.json. Where a file leaves sizes out they are
// the defaults of the configuration class, which are those of a published model.

#include "tests/strategies/shipped_hf_types.h"
#include "tests/test.h"

namespace foreshard::hf_encoders_test {

HfModel encoder_of(std::string_view text, std::optional<std::int64_t> sequence = {}) {
  return value_of(read_shipped(text, "mine", sequence));
}

std::int64_t count(std::string_view text) {
  return parameter_count(encoder_of(text).model);
}

std::string refusal(std::string_view text) {
  return message_of(read_shipped(text, "mine", std::nullopt), "no fault");
}

// google-bert/bert-base-uncased, by its classes: with both heads of the pretraining 110,106,428,
// with the first alone 109,514,298, without them 109,482,240.
TEST(HfEncoders, BertByItsClasses) {
  EXPECT_EQ(count(R"({"model_type": "bert"})"), 110'106'428);
  EXPECT_EQ(count(R"({"model_type": "bert", "architectures": ["BertForMaskedLM"]})"), 109'514'298);
  EXPECT_EQ(count(R"({"model_type": "bert", "architectures": ["BertModel"]})"), 109'482'240);
  const HfModel three =
      encoder_of(R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"],
                     "id2label": {"0": "a", "1": "b", "2": "c"}, "tie_word_embeddings": false})");
  EXPECT_EQ(parameter_count(three.model), 109'482'240 + 3 * 769);
  EXPECT_EQ(three.model.sequence, 512);
  EXPECT_THAT(three.remarks, IsEmpty());
  EXPECT_THAT(refusal(R"({"model_type": "bert", "is_decoder": true})"), HasSubstr("'is_decoder'"));
  EXPECT_THAT(refusal(R"({"model_type": "bert", "position_embedding_type": "relative_key"})"),
              HasSubstr("'position_embedding_type' is \"relative_key\""));
  EXPECT_THAT(refusal(R"({"model_type": "bert", "add_cross_attention": true})"),
              HasSubstr("'add_cross_attention'"));
}

// google/vit-base-patch16-224-in21k, whose class has a pooler, has 86,389,248 parameters.
TEST(HfEncoders, ViT) {
  EXPECT_EQ(count(R"({"model_type": "vit", "architectures": ["ViTModel"]})"), 86'389'248);
  const HfModel large = encoder_of(
      R"({"model_type": "vit", "architectures": ["ViTForImageClassification"], "image_size": 384,
          "num_labels": 1000, "tie_word_embeddings": false})",
      256);
  EXPECT_EQ(large.model.sequence, 577);
  EXPECT_EQ(parameter_count(large.model), 86'567'656 + (577 - 197) * 768);
  EXPECT_THAT(large.remarks,
              ElementsAre("the sequence is the 577 tokens that an image has, not 256"));
  EXPECT_THAT(refusal(R"({"model_type": "vit", "image_size": 225})"),
              HasSubstr("an image of 225 x 225 pixels does not divide into squares of 16"));
}

// google-t5/t5-small has 60,506,624 parameters, google/t5-v1_1-base, with a gate and an output
// projection of its own, 247,577,856.
TEST(HfEncoders, T5) {
  const HfModel small = encoder_of(R"({"model_type": "t5", "is_encoder_decoder": true})");
  EXPECT_EQ(parameter_count(small.model), 60'506'624);
  EXPECT_EQ(small.model.encoder->sequence, 512);
  EXPECT_THAT(small.remarks, ElementsAre(HasSubstr("read 512 tokens each")));
  EXPECT_EQ(count(R"({"model_type": "t5", "d_model": 768, "num_layers": 12, "num_heads": 12,
                      "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false})"),
            247'577'856);
  EXPECT_THAT(refusal(R"({"model_type": "t5", "feed_forward_proj": "tanh"})"),
              HasSubstr("'feed_forward_proj' is 'tanh'"));
  EXPECT_THAT(refusal(R"({"model_type": "t5", "relative_attention_num_buckets": 64})"),
              HasSubstr("'relative_attention_num_buckets' is 64"));
}

// openai/whisper-tiny has 37,760,640 parameters.
TEST(HfEncoders, Whisper) {
  const HfModel tiny = encoder_of(R"({"model_type": "whisper", "is_encoder_decoder": true,
                                      "num_mel_bins": 80})");
  EXPECT_EQ(parameter_count(tiny.model), 37'760'640);
  EXPECT_EQ(tiny.model.sequence, 448);
  EXPECT_EQ(tiny.model.encoder->sequence, 1500);
  EXPECT_THAT(refusal(R"({"model_type": "whisper", "decoder_ffn_dim": 64})"),
              HasSubstr("'decoder_ffn_dim' is not that of the encoder, 1536"));
}

TEST(HfEncoders, OthersSayWhatTheyAre) {
  EXPECT_THAT(
      refusal(R"({"model_type": "bert", "architectures": ["BertForTokenClassification"]})"),
      HasSubstr("class 'BertForTokenClassification' is not modelled; of model_type 'bert' are: "
                "BertForPreTraining"));
  EXPECT_THAT(refusal(R"({"model_type": "albert"})"),
              HasSubstr("layers that share their parameters"));
  EXPECT_THAT(refusal(R"({"model_type": "clip", "text_config": {}, "vision_config": {"a": 1}})"),
              HasSubstr("a vision tower ('vision_config') and two encoders and a loss over all "
                        "pairs of the samples of all ranks, which are not modelled"));
}

}  // namespace foreshard::hf_encoders_test
