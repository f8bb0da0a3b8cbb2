// Models from config.json: sizes as written, what files leave out as the model type has it, and
// errors that name the key.
#include "strategies/graph/hf_config.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <string>

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

// Llama 2 7B: 3 h of queries, keys and values and h of attention's output in each of 32 layers;
// 2 f of gate and up, h of down. h = 4,096, f = 11,008.
TEST(HfConfig, BiasesOfLlama) {
  constexpr std::int64_t kWithout = 6'738'415'616;
  const Model attention = model_of(R"({"model_type": "llama", "attention_bias": true})");
  EXPECT_TRUE(attention.has_qkv_bias());
  EXPECT_TRUE(attention.has_attention_out_bias());
  EXPECT_FALSE(attention.has_mlp_bias());
  EXPECT_EQ(parameter_count(attention), kWithout + 32LL * (3 * 4096 + 4096));
  const Model mlp = model_of(R"({"model_type": "llama", "mlp_bias": true})");
  EXPECT_FALSE(mlp.has_qkv_bias());
  EXPECT_EQ(parameter_count(mlp), kWithout + 32LL * (2 * 11008 + 4096));
  EXPECT_THAT(fault_of(R"({"model_type": "mistral", "mlp_bias": true})"),
              AllOf(HasSubstr("'mlp_bias'"), HasSubstr("'mistral' have no such bias")));
}

// A window that holds the sequence changes nothing; a shorter one is not modelled.
TEST(HfConfig, SlidingWindows) {
  const auto fault = [](const std::string& keys, std::int64_t sequence) {
    return fault_of("{" + keys + "}", sequence);
  };
  const std::string stated = R"("model_type": "mistral", "sliding_window": 4096)";
  EXPECT_EQ(fault(stated, 4096), "no fault");
  EXPECT_THAT(fault(stated, 4097),
              AllOf(HasSubstr("'sliding_window' is 4096, less than the sequence of 4097 tokens"),
                    HasSubstr("not modelled"), HasSubstr("a sequence of at most 4096 tokens")));
  EXPECT_EQ(fault(R"("model_type": "mistral", "sliding_window": null)", 8192), "no fault");
  // What the configuration class of mistral has where the file is silent.
  EXPECT_THAT(fault(R"("model_type": "mistral")", 8192), HasSubstr("'sliding_window' is 4096"));
  EXPECT_THAT(fault(R"("model_type": "llama", "sliding_window": 512)", 1024),
              HasSubstr("'sliding_window' is 512"));
  EXPECT_THAT(fault(R"("model_type": "llama", "sliding_window": -1)", 1024),
              HasSubstr("'sliding_window' is -1"));

  // Qwen 2 slides where it is told to, from layer max_window_layers on.
  const std::string qwen =
      R"("model_type": "qwen2", "num_hidden_layers": 32, "sliding_window": 512)";
  EXPECT_EQ(fault(qwen, 1024), "no fault");
  EXPECT_EQ(fault(qwen + R"(, "use_sliding_window": false)", 1024), "no fault");
  EXPECT_THAT(fault(qwen + R"(, "use_sliding_window": true)", 1024),
              HasSubstr("'sliding_window' is 512"));
  EXPECT_EQ(fault(qwen + R"(, "use_sliding_window": true, "max_window_layers": 32)", 1024),
            "no fault");
  EXPECT_THAT(fault(qwen + R"(, "use_sliding_window": true, "max_window_layers": 0)", 1024),
              HasSubstr("'sliding_window' is 512"));
}

TEST(HfConfig, LayersWithAttentionOfTheirOwn) {
  const auto fault = [](const std::string& keys) {
    return fault_of(R"({"model_type": "qwen2", "num_hidden_layers": 2, )" + keys + "}", 1024);
  };
  EXPECT_EQ(fault(R"("layer_types": ["full_attention", "full_attention"])"), "no fault");
  EXPECT_EQ(fault(R"("layer_types": ["full_attention", "sliding_attention"],
                     "use_sliding_window": true, "sliding_window": 1024)"),
            "no fault");
  EXPECT_THAT(fault(R"("layer_types": ["full_attention", "sliding_attention"],
                       "use_sliding_window": true, "sliding_window": 1023)"),
              HasSubstr("'sliding_window' is 1023"));
  EXPECT_THAT(fault(R"("layer_types": ["full_attention", "sliding_attention"])"),
              HasSubstr("the file gives no 'sliding_window'"));
  EXPECT_THAT(fault(R"("layer_types": ["full_attention", "linear_attention"])"),
              HasSubstr("'layer_types' has 'linear_attention'"));
  EXPECT_THAT(fault(R"("layer_types": ["full_attention"])"), HasSubstr("each of 2 layers"));
  EXPECT_THAT(fault(R"("attention_chunk_size": 256)"),
              AllOf(HasSubstr("'attention_chunk_size' is 256"), HasSubstr("within chunks")));
  EXPECT_EQ(fault(R"("attention_chunk_size": 1024)"), "no fault");
}

TEST(HfConfig, QuantisedWeightsAndCrossAttentionAreRefused) {
  EXPECT_THAT(fault_of(R"({"model_type": "llama",
                           "quantization_config": {"quant_method": "gptq", "bits": 4}})"),
              AllOf(HasSubstr("'quantization_config' (gptq)"), HasSubstr("before quantisation")));
  EXPECT_EQ(fault_of(R"({"model_type": "llama", "quantization_config": null})"), "no fault");
  EXPECT_THAT(fault_of(R"({"model_type": "gpt2", "add_cross_attention": true})"),
              HasSubstr("'add_cross_attention'"));
}

// Configurations as published: of the types that are modelled, or refused by the name of theirs.
TEST(HfConfig, PublishedFiles) {
  const std::filesystem::path folder = FORESHARD_SOURCE_DIR "/../shared/data/real/hf";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no " << folder;
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    SCOPED_TRACE(entry.path().filename());
    if (const auto model = read_hf_config(text, "published", 2048)) {
      EXPECT_THAT(text, HasSubstr("\"llama\""));
      ++read;
    } else {
      EXPECT_THAT(model.error().message,
                  AllOf(HasSubstr("'model_type' is '"), HasSubstr("which is not modelled")));
    }
  }
  EXPECT_GE(read, 1);
}

TEST(HfConfig, TheSequenceByDefault) {
  EXPECT_EQ(read_hf_config(R"({"model_type": "llama"})", "mine", {})->sequence, 2048);
  EXPECT_EQ(read_hf_config(R"({"model_type": "gpt2"})", "mine", {})->sequence, 1024);
}

TEST(HfConfig, NullIsAsIfLeftOut) {
  const Model model = model_of(R"({"model_type": "llama", "num_attention_heads": 16,
                                   "num_key_value_heads": null, "head_dim": null})");
  EXPECT_EQ(model.kv(), 16);
  EXPECT_EQ(model.head_size(), 256);
}

TEST(HfConfig, ErrorsNameTheKey) {
  EXPECT_THAT(fault_of("{"), HasSubstr("not JSON"));
  EXPECT_THAT(fault_of("[1]"), HasSubstr("not a JSON object"));
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
