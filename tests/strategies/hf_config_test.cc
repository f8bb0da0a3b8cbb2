// Models from config.json: sizes as written, what files leave out as the model type has it, and
// errors that name the key.
#include "strategies/graph/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foreshard {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Model model_of(std::string_view text, std::int64_t sequence = 1024) {
  const auto model = read_hf_config(text, "mine", sequence);
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  return model ? *model : Model{};
}

std::string fault_of(std::string_view text, std::int64_t sequence = 1024) {
  const auto model = read_hf_config(text, "mine", sequence);
  return model ? "no fault" : model.error().message;
}

TEST(HfConfig, LlamaAsWritten) {
  const Model model = model_of(R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
    "num_hidden_layers": 3, "num_attention_heads": 8, "num_key_value_heads": 2,
    "intermediate_size": 160, "vocab_size": 1000, "head_dim": 16, "hidden_act": "silu",
    "tie_word_embeddings": true, "attention_dropout": 0.0, "rope_theta": 500000.0})",
                               4096);
  EXPECT_EQ(model.name, "mine");
  EXPECT_EQ(model.layers, 3);
  EXPECT_EQ(model.hidden, 64);
  EXPECT_EQ(model.heads, 8);
  EXPECT_EQ(model.kv(), 2);
  EXPECT_EQ(model.head_size(), 16);
  EXPECT_EQ(model.ffn_width(), 160);
  EXPECT_EQ(model.vocabulary, 1000);
  EXPECT_EQ(model.sequence, 4096);
  EXPECT_EQ(model.norm, Norm::kRmsNorm);
  EXPECT_EQ(model.activation, Activation::kSwiglu);
  EXPECT_EQ(model.positions, Positions::kRotary);
  EXPECT_FALSE(model.bias);
  EXPECT_FALSE(model.qkv_bias);
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_FALSE(model.dropout);
}

// Llama 2 7B has 6,738,415,616 parameters (its model card), and all of its sizes are the defaults
// of model type llama.
TEST(HfConfig, DefaultsOfLlamaAreLlama2) {
  EXPECT_EQ(parameter_count(model_of(R"({"model_type": "llama"})", 4096)), 6'738'415'616);
}

// gpt2 has 124,439,808 parameters with its 1,024 positions (its model card), all sizes by default.
TEST(HfConfig, DefaultsOfGpt2AreTheSmallOne) {
  const Model model = model_of(R"({"model_type": "gpt2", "n_inner": null})", 1024);
  EXPECT_EQ(parameter_count(model), 124'439'808);
  EXPECT_EQ(model.norm, Norm::kLayerNorm);
  EXPECT_TRUE(model.bias);
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_TRUE(model.dropout);
}

TEST(HfConfig, Gpt2WithoutDropout) {
  EXPECT_FALSE(model_of(R"({"model_type": "gpt2", "resid_pdrop": 0.0, "attn_pdrop": 0})").dropout);
}

TEST(HfConfig, DefaultsOfMistralAndQwen2) {
  const Model mistral = model_of(R"({"model_type": "mistral"})");
  EXPECT_EQ(mistral.kv(), 8);
  EXPECT_EQ(mistral.ffn_width(), 14336);
  EXPECT_FALSE(mistral.qkv_bias);
  const Model qwen = model_of(R"({"model_type": "qwen2", "num_key_value_heads": 4})");
  EXPECT_EQ(qwen.kv(), 4);
  EXPECT_EQ(qwen.vocabulary, 151936);
  EXPECT_TRUE(qwen.qkv_bias);
}

TEST(HfConfig, NullIsAsIfLeftOut) {
  const Model model = model_of(R"({"model_type": "llama", "num_attention_heads": 16,
                                   "num_key_value_heads": null, "head_dim": null})");
  EXPECT_EQ(model.kv(), 16);
  EXPECT_EQ(model.head_size(), 256);
}

TEST(HfConfig, ErrorsNameTheKey) {
  EXPECT_THAT(fault_of("{"), HasSubstr("not JSON"));
  EXPECT_THAT(fault_of("[1]"), HasSubstr("no JSON object"));
  EXPECT_THAT(fault_of("{}"), AllOf(HasSubstr("'model_type'"), HasSubstr("'llama'")));
  EXPECT_THAT(fault_of(R"({"model_type": "t5"})"), AllOf(HasSubstr("'t5'"), HasSubstr("'gpt2'")));
  EXPECT_THAT(fault_of(R"({"model_type": "llama", "hidden_size": "4096"})"),
              AllOf(HasSubstr("'hidden_size'"), HasSubstr("whole number")));
  EXPECT_THAT(fault_of(R"({"model_type": "llama", "num_hidden_layers": 0})"),
              HasSubstr("'num_hidden_layers'"));
  EXPECT_THAT(fault_of(R"({"model_type": "llama", "vocab_size": -5})"), HasSubstr("'vocab_size'"));
  EXPECT_THAT(fault_of(R"({"model_type": "llama", "vocab_size": 18446744073709551615})"),
              HasSubstr("'vocab_size'"));
  EXPECT_THAT(fault_of(R"({"model_type": "llama", "tie_word_embeddings": 1})"),
              HasSubstr("'tie_word_embeddings'"));
  EXPECT_THAT(fault_of(R"({"model_type": "llama", "hidden_act": "relu"})"),
              HasSubstr("'hidden_act'"));
  EXPECT_THAT(fault_of(R"({"model_type": "gpt2", "attn_pdrop": "no"})"), HasSubstr("'attn_pdrop'"));
  EXPECT_THAT(fault_of(R"({"model_type": "llama", "num_local_experts": 8})"),
              HasSubstr("'num_local_experts'"));
  EXPECT_THAT(fault_of(R"({"model_type": "gpt2"})", 2048), HasSubstr("'n_positions'"));
  EXPECT_THAT(fault_of(R"({"model_type": "llama"})", 0), HasSubstr("0 tokens"));
}

TEST(HfConfig, SizesThatContradictEachOther) {
  EXPECT_THAT(fault_of(R"({"model_type": "llama", "num_attention_heads": 12,
                           "num_key_value_heads": 5, "hidden_size": 1200})"),
              HasSubstr("kv_heads 5"));
}

}  // namespace
}  // namespace foreshard
