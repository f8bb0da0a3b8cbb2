// Models from config.json: sizes as written, what files leave out as the model type has it, and
// errors that name the key.
#include "strategies/graph/hf_config.h"

#include <fmt/format.h>

#include "tests/strategies/shipped_hf_types.h"
#include "tests/test.h"

namespace foreshard::hf_config_test {

Model model_of(std::string_view text, std::int64_t sequence = 1024) {
  return value_of(read_shipped(text, "mine", sequence)).model;
}

std::string fault_of(std::string_view text, std::int64_t sequence = 1024) {
  return message_of(read_shipped(text, "mine", sequence), "no fault");
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

// What the layers of a model see: "4096 sliding, first 0, every 2".
std::string windows_of(const std::string& keys, std::int64_t sequence = 1024) {
  const Model model = model_of("{" + keys + "}", sequence);
  if (model.window == 0) return "all";
  return fmt::format("{} {}, first {}, every {}", model.window, yaml::name_of(model.window_kind),
                     model.full_layers, model.full_interval);
}

// A window that holds the sequence changes nothing.
TEST(HfConfig, SlidingWindows) {
  const std::string stated = R"("model_type": "mistral", "sliding_window": 4096)";
  EXPECT_EQ(windows_of(stated, 4096), "all");
  EXPECT_EQ(windows_of(stated, 4097), "4096 sliding, first 0, every 0");
  EXPECT_EQ(windows_of(R"("model_type": "mistral", "sliding_window": null)", 8192), "all");
  // What the configuration class of mistral has where the file is silent.
  EXPECT_EQ(windows_of(R"("model_type": "mistral")", 8192), "4096 sliding, first 0, every 0");
  EXPECT_EQ(windows_of(R"("model_type": "llama", "sliding_window": 512)"),
            "512 sliding, first 0, every 0");
  EXPECT_THAT(fault_of(R"({"model_type": "llama", "sliding_window": -1})", 1024),
              HasSubstr("'sliding_window' is -1"));
  // A token sees so many before it, and itself.
  EXPECT_EQ(windows_of(R"("model_type": "phi3", "sliding_window": 511)"),
            "512 sliding, first 0, every 0");

  // Qwen 2 slides where it is told to, from layer max_window_layers on.
  const std::string qwen =
      R"("model_type": "qwen2", "num_hidden_layers": 32, "sliding_window": 512)";
  EXPECT_EQ(windows_of(qwen), "all");
  EXPECT_EQ(windows_of(qwen + R"(, "use_sliding_window": false)"), "all");
  const std::string slides = qwen + R"(, "use_sliding_window": true)";
  EXPECT_EQ(windows_of(slides), "512 sliding, first 28, every 0");
  EXPECT_EQ(windows_of(slides + R"(, "max_window_layers": 32)"), "all");
  EXPECT_EQ(windows_of(slides + R"(, "max_window_layers": 0)"), "512 sliding, first 0, every 0");
}

TEST(HfConfig, LayersThatTakeTurns) {
  EXPECT_EQ(windows_of(R"("model_type": "olmo3")", 4096), "all");
  EXPECT_EQ(windows_of(R"("model_type": "olmo3")", 4097), "4096 sliding, first 0, every 4");
  EXPECT_EQ(windows_of(R"("model_type": "gemma2")", 8192), "4096 sliding, first 0, every 2");
  EXPECT_EQ(windows_of(R"("model_type": "gemma3_text", "sliding_window": 512)"),
            "512 sliding, first 0, every 6");
  EXPECT_EQ(windows_of(R"("model_type": "gpt_oss")"), "128 sliding, first 0, every 2");
  EXPECT_EQ(windows_of(R"("model_type": "llama4_text")", 8192), "all");
  EXPECT_EQ(windows_of(R"("model_type": "llama4_text")", 16384), "8192 chunk, first 0, every 4");
  EXPECT_THAT(fault_of(R"({"model_type": "llama4_text"})", 10000),
              HasSubstr("10000 tokens does not divide into chunks of 8192"));
}

TEST(HfConfig, LayersWithAttentionOfTheirOwn) {
  const auto keys = [](const std::string& more) {
    return R"("model_type": "qwen2", "num_hidden_layers": 4, )" + more;
  };
  const auto fault = [&](const std::string& more) {
    return fault_of("{" + keys(more) + "}", 1024);
  };
  const std::string slides = R"("use_sliding_window": true, "sliding_window": 1023, )";
  const std::string full = R"("full_attention")";
  const std::string sliding = R"("sliding_attention")";
  const auto list = [](const std::string& a, const std::string& b, const std::string& c,
                       const std::string& d) {
    return R"("layer_types": [)" + a + ", " + b + ", " + c + ", " + d + "]";
  };
  EXPECT_EQ(windows_of(keys(list(full, full, full, full))), "all");
  EXPECT_EQ(windows_of(keys(R"("use_sliding_window": true, "sliding_window": 1024, )" +
                            list(full, full, sliding, sliding))),
            "all");
  EXPECT_EQ(windows_of(keys(slides + list(full, full, sliding, sliding))),
            "1023 sliding, first 2, every 0");
  EXPECT_EQ(windows_of(keys(slides + list(sliding, full, sliding, full))),
            "1023 sliding, first 0, every 2");
  EXPECT_EQ(windows_of(keys(slides + list(sliding, sliding, sliding, full))),
            "1023 sliding, first 0, every 4");
  EXPECT_THAT(fault(slides + list(sliding, full, full, sliding)),
              HasSubstr("'layer_types' has full attention in others"));
  EXPECT_THAT(fault(list(full, full, full, sliding)),
              HasSubstr("the file gives no 'sliding_window'"));
  EXPECT_THAT(fault(list(full, full, full, R"("linear_attention")")),
              HasSubstr("'layer_types' has 'linear_attention'"));
  EXPECT_THAT(fault(R"("layer_types": ["full_attention"])"), HasSubstr("each of 4 layers"));
  EXPECT_EQ(windows_of(keys(R"("attention_chunk_size": 256)")), "256 chunk, first 0, every 0");
  EXPECT_EQ(windows_of(keys(R"("attention_chunk_size": 1024)")), "all");
  EXPECT_THAT(fault(slides + R"("attention_chunk_size": 256, )" +
                    list(full, full, sliding, R"("chunked_attention")")),
              HasSubstr("windows and chunks"));
}

TEST(HfConfig, QuantisedWeightsAndCrossAttentionAreRefused) {
  EXPECT_THAT(fault_of(R"({"model_type": "llama",
                           "quantization_config": {"quant_method": "gptq", "bits": 4}})"),
              AllOf(HasSubstr("'quantization_config' (gptq)"), HasSubstr("before quantisation")));
  EXPECT_EQ(fault_of(R"({"model_type": "llama", "quantization_config": null})"), "no fault");
  // What is published in a narrow type alone is trained in another one.
  EXPECT_THAT(read_shipped(R"({"model_type": "gpt_oss",
                                 "quantization_config": {"quant_method": "mxfp4"}})",
                           "mine", 512)
                  ->remarks,
              ElementsAre(HasSubstr("the weights of the file are mxfp4")));
  EXPECT_THAT(fault_of(R"({"model_type": "gpt2", "add_cross_attention": true})"),
              HasSubstr("'add_cross_attention'"));
}

TEST(HfConfig, TheSequenceByDefault) {
  const auto sequence_of = [](std::string_view text) {
    return read_shipped(text, "mine", {})->model.sequence;
  };
  EXPECT_EQ(sequence_of(R"({"model_type": "llama"})"), 2048);
  EXPECT_EQ(sequence_of(R"({"model_type": "llama", "max_position_embeddings": 131072})"), 2048);
  EXPECT_EQ(sequence_of(R"({"model_type": "llama", "max_position_embeddings": 512})"), 512);
  EXPECT_EQ(sequence_of(R"({"model_type": "gpt2"})"), 1024);
}

// A sequence above what the file states is refused, unless positions are to be extended. ALiBi has
// no limit.
TEST(HfConfig, TheLongestSequence) {
  const auto read = [](std::string_view text, std::int64_t sequence) {
    return *read_shipped(text, "mine", sequence);
  };
  const std::string_view llama = R"({"model_type": "llama", "max_position_embeddings": 4096})";
  EXPECT_THAT(read(llama, 4096).remarks, IsEmpty());
  EXPECT_THAT(fault_of(llama, 8192),
              AllOf(HasSubstr("'max_position_embeddings' gives the model 4,096 positions, "
                              "and the sequence has 8,192 tokens"),
                    HasSubstr("huggingface.extend=true")));
  EXPECT_THAT(fault_of(R"({"model_type": "gpt2"})", 2048), HasSubstr("'n_positions'"));
  EXPECT_EQ(read(R"({"model_type": "bloom", "seq_length": 512})", 4096).model.sequence, 4096);
}

// A table of positions gets the further rows.
TEST(HfConfig, PositionsThatAreExtended) {
  const auto extended = [](std::string_view text, std::int64_t sequence) {
    return *read_shipped(text, "mine", sequence, true);
  };
  const std::string_view llama = R"({"model_type": "llama", "max_position_embeddings": 4096})";
  EXPECT_EQ(extended(llama, 1048576).model.sequence, 1048576);
  EXPECT_THAT(extended(llama, 1048576).remarks,
              ElementsAre("positions are extended from 4,096 ('max_position_embeddings') to "
                          "1,048,576 tokens"));
  EXPECT_THAT(extended(llama, 4096).remarks, IsEmpty());
  EXPECT_EQ(extended(R"({"model_type": "gpt2"})", 2048).model.position_rows(), 2048);
}

// Four times the 32,768 positions that the model was trained with first.
TEST(HfConfig, ScalingOfRotaryPositionsInTheFile) {
  const std::string_view qwen =
      R"({"model_type": "qwen2", "max_position_embeddings": 32768, "rope_scaling":
          {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}})";
  EXPECT_EQ(read_shipped(qwen, "mine", 131072)->model.sequence, 131072);
  EXPECT_THAT(fault_of(qwen, 131073), HasSubstr("gives the model 131,072 positions"));
  const std::string_view linear =
      R"({"model_type": "llama", "max_position_embeddings": 2048,
          "rope_scaling": {"type": "linear", "factor": 8.0}})";
  EXPECT_EQ(read_shipped(linear, "mine", 16384)->model.sequence, 16384);
}

// A class that is not known for a decoder with a language-model head is read, with a remark.
TEST(HfConfig, ClassesThatAreNoUsualDecoders) {
  const auto remarks = [](const std::string& keys) {
    return read_shipped("{" + keys + "}", "mine", 512)->remarks;
  };
  for (const char* usual :
       {R"("model_type": "llama")", R"("model_type": "llama", "architectures": [])",
        R"("model_type": "llama", "architectures": null)",
        R"("model_type": "llama", "architectures": ["LlamaForCausalLM"])",
        R"("model_type": "gpt2", "architectures": ["GPT2LMHeadModel"])",
        R"("model_type": "chatglm", "architectures": ["ChatGLMModel"])",
        R"("model_type": "phi3", "auto_map": {"AutoModelForCausalLM":
           "modeling_phi3.Phi3ForCausalLM"})"})
    EXPECT_THAT(remarks(usual), IsEmpty()) << usual;
  EXPECT_THAT(
      remarks(R"("model_type": "llama", "architectures": ["LlamaForSequenceClassification"])"),
      ElementsAre("the file is of class 'LlamaForSequenceClassification' ('architectures'), but "
                  "read as the decoder of model_type 'llama' with a language-model head; what else "
                  "that class has is not in the prediction"));
  EXPECT_THAT(
      remarks(R"("model_type": "gpt2", "architectures": ["GPT2LMHeadCustomModel"])"),
      ElementsAre(HasSubstr("'GPT2LMHeadCustomModel' ('architectures'), but read as the decoder")));
  EXPECT_THAT(remarks(R"("model_type": "gpt2", "auto_map": {"AutoModelForCausalLM":
                         "bigcode/santacoder--modeling_gpt2_mq.GPT2LMHeadCustomModel"})"),
              ElementsAre(HasSubstr("'GPT2LMHeadCustomModel' ('auto_map')")));
}

TEST(HfConfig, LayersWithoutRotaryPositions) {
  const auto interval = [](const std::string& keys) {
    return model_of("{" + keys + "}", 512).unrotated_interval;
  };
  const std::string smollm = R"("model_type": "smollm3")";
  EXPECT_EQ(interval(smollm), 4);
  EXPECT_EQ(interval(smollm + R"(, "no_rope_layer_interval": 7)"), 7);
  EXPECT_EQ(interval(smollm + R"(, "num_hidden_layers": 2, "no_rope_layers": [1, 1])"), 0);
  EXPECT_EQ(interval(smollm + R"(, "num_hidden_layers": 2, "no_rope_layers": [1, 0, 0])"), 2);
  EXPECT_THAT(fault_of("{" + smollm + R"(, "num_hidden_layers": 3, "no_rope_layers": [1, 0, 0]})"),
              HasSubstr("'no_rope_layers' names others"));
  EXPECT_THAT(fault_of("{" + smollm + R"(, "no_rope_layers": [1, 0]})"),
              HasSubstr("each of 36 layers"));
  EXPECT_EQ(interval(R"("model_type": "cohere2")"), 4);
  EXPECT_EQ(interval(R"("model_type": "cohere")"), 0);
  EXPECT_EQ(interval(R"("model_type": "llama4_text", "no_rope_layers": [])"), 4);
}

// The whole table is trained, however many rows of it the sequence uses; that of OPT has two more.
TEST(HfConfig, TablesOfPositionsAreWhole) {
  const Model gpt2 = model_of(R"({"model_type": "gpt2"})", 256);
  EXPECT_EQ(gpt2.position_rows(), 1024);
  EXPECT_EQ(parameter_count(gpt2), 124'439'808);
  EXPECT_EQ(model_of(R"({"model_type": "opt"})", 2048).position_rows(), 2050);
}

struct Published {
  std::string_view name;
  std::int64_t parameters;
  std::string_view config;  ///< What decides it: what is left out has the default of its type.
};

// Counts of the models' cards and of their weights (the metadata of the safetensors that the hub
// shows), or by hand where a comment says so.
constexpr Published kPublished[]{
    {"Falcon 7B", 6'921'720'704, R"("model_type": "falcon", "multi_query": true,
        "parallel_attn": true, "num_attention_heads": 71, "hidden_size": 4544)"},
    {"Falcon 7B as first published", 6'921'720'704, R"("model_type": "RefinedWebModel",
        "n_layer": 32, "n_head": 71, "multi_query": true, "parallel_attn": true)"},
    {"Falcon 40B", 41'303'293'952, R"("model_type": "falcon", "new_decoder_architecture": true,
        "num_kv_heads": 8, "num_attention_heads": 128, "hidden_size": 8192,
        "num_hidden_layers": 60)"},
    {"Falcon 40B as first published", 41'303'293'952, R"("model_type": "RefinedWeb",
        "n_head_kv": 8, "n_head": 128, "hidden_size": 8192, "n_layer": 60)"},
    // By hand, h = 4,096: h (6,144 + h + 8 h) and one norm of 2 h a layer, 60 of them, 2 x 65,024 h
    // + 2 h; the hub says 11.103 billion.
    {"Falcon 2 11B", 11'102'822'400, R"("model_type": "falcon", "new_decoder_architecture": true,
        "num_kv_heads": 8, "num_attention_heads": 32, "hidden_size": 4096, "ff_factor": 4,
        "ffn_hidden_size": 16384, "num_hidden_layers": 60, "num_ln_in_parallel_attn": 1,
        "tie_word_embeddings": false)"},
    {"Falcon RW 1B", 1'311'625'216, R"("model_type": "falcon", "alibi": true, "bias": true,
        "multi_query": false, "parallel_attn": false, "num_attention_heads": 32,
        "hidden_size": 2048, "num_hidden_layers": 24, "vocab_size": 50304)"},
    {"OPT 1.3B", 1'315'758'080, R"("model_type": "opt", "hidden_size": 2048, "ffn_dim": 8192,
        "num_attention_heads": 32, "num_hidden_layers": 24, "word_embed_proj_dim": 2048)"},
    {"BLOOM 176B", 176'247'271'424, R"("model_type": "bloom", "n_embed": 14336, "n_layer": 70,
        "num_attention_heads": 112)"},
    {"BLOOM 7.1B", 7'069'016'064, R"("model_type": "bloom", "hidden_size": 4096, "n_layer": 30,
        "n_head": 32)"},
    {"GPT-2 XL", 1'557'611'200, R"("model_type": "gpt2", "n_embd": 1600, "n_layer": 48,
        "n_head": 25)"},
    // By hand, h = 2,048: h^2 and 256 h of queries, keys and values, h^2 and 8 h^2 of the rest,
    // with 13 h + 256 of biases and norms, 24 times; 49,280 h, 2,048 h and 2 h. As gpt_bigcode,
    // too.
    {"SantaCoder", 1'124'886'528, R"("model_type": "gpt2", "attention_head_type": "multiquery",
        "n_embd": 2048, "n_layer": 24, "n_head": 16, "n_inner": 8192, "n_positions": 2048,
        "vocab_size": 49280)"},
    {"GPT-NeoX 20B", 20'554'567'680, R"("model_type": "gpt_neox")"},
    {"Pythia 6.9B", 6'857'302'016, R"("model_type": "gpt_neox", "hidden_size": 4096,
        "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 16384)"},
    {"GPT-Neo 1.3B", 1'315'575'808, R"("model_type": "gpt_neo",
        "attention_types": [[["global"], 24]])"},
    {"GPT-J 6B", 6'050'882'784, R"("model_type": "gptj")"},
    {"MPT 7B", 6'649'286'656, R"("model_type": "mpt", "d_model": 4096, "n_layers": 32,
        "n_heads": 32, "vocab_size": 50432, "no_bias": true, "attn_config": {"alibi": true})"},
    {"Phi 1.5", 1'418'270'720, R"("model_type": "phi")"},
    {"Phi 2", 2'779'683'840, R"("model_type": "phi", "hidden_size": 2560,
        "intermediate_size": 10240, "num_hidden_layers": 32)"},
    {"Phi 3 mini", 3'821'079'552, R"("model_type": "phi3", "sliding_window": 2047)"},
    {"StableLM 2 1.6B", 1'644'515'328, R"("model_type": "stablelm", "hidden_size": 2048,
        "intermediate_size": 5632, "num_hidden_layers": 24, "use_qkv_bias": true,
        "vocab_size": 100352)"},
    {"StableLM 3B 4E1T", 2'795'443'200, R"("model_type": "stablelm")"},
    {"Gemma 2B", 2'506'172'416, R"("model_type": "gemma", "hidden_size": 2048,
        "num_attention_heads": 8, "num_key_value_heads": 1, "num_hidden_layers": 18,
        "intermediate_size": 16384)"},
    {"Gemma 7B", 8'537'680'896, R"("model_type": "gemma")"},
    {"Gemma 2 2B", 2'614'341'888, R"("model_type": "gemma2")"},
    {"Gemma 2 9B", 9'241'705'984, R"("model_type": "gemma2", "hidden_size": 3584,
        "num_attention_heads": 16, "num_key_value_heads": 8, "num_hidden_layers": 42,
        "intermediate_size": 14336)"},
    {"Gemma 3 1B", 999'885'952, R"("model_type": "gemma3_text", "hidden_size": 1152,
        "num_attention_heads": 4, "num_key_value_heads": 1, "intermediate_size": 6912,
        "vocab_size": 262144)"},
    {"OLMo 1B", 1'176'764'416, R"("model_type": "olmo", "hidden_size": 2048,
        "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 16,
        "tie_word_embeddings": true)"},
    {"OLMo 2 7B", 7'298'617'344, R"("model_type": "olmo2", "vocab_size": 100352)"},
    {"OLMo 3 7B", 7'298'011'136, R"("model_type": "olmo3", "vocab_size": 100278)"},
    {"OLMo 3 32B", 32'233'522'176, R"("model_type": "olmo3", "vocab_size": 100278,
        "hidden_size": 5120, "intermediate_size": 27648, "num_hidden_layers": 64,
        "num_attention_heads": 40, "num_key_value_heads": 8)"},
    {"Seed-OSS 36B", 36'151'104'512, R"("model_type": "seed_oss", "hidden_size": 5120)"},
    {"SmolLM3 3B", 3'075'098'624, R"("model_type": "smollm3")"},
    {"Granite 3.1 2B", 2'533'531'648, R"("model_type": "granite", "hidden_size": 2048,
        "num_hidden_layers": 40, "num_key_value_heads": 8, "intermediate_size": 8192,
        "vocab_size": 49155, "tie_word_embeddings": true)"},
    {"Command R", 34'980'831'232, R"("model_type": "cohere")"},
    {"StarCoder", 15'517'456'384, R"("model_type": "gpt_bigcode", "n_embd": 6144, "n_layer": 40,
        "n_head": 48, "n_inner": 24576, "n_positions": 8192, "vocab_size": 49152)"},
    {"StarCoder 2 3B", 3'030'371'328, R"("model_type": "starcoder2")"},
    {"Qwen 7B", 7'721'324'544, R"("model_type": "qwen")"},
    {"Qwen 3 0.6B", 596'049'920, R"("model_type": "qwen3", "hidden_size": 1024,
        "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8,
        "intermediate_size": 3072, "tie_word_embeddings": true)"},
    {"Qwen 3 8B", 8'190'735'360, R"("model_type": "qwen3", "num_hidden_layers": 36,
        "num_key_value_heads": 8, "intermediate_size": 12288)"},
    {"ChatGLM 3 6B", 6'243'584'000, R"("model_type": "chatglm", "add_qkv_bias": true,
        "multi_query_attention": true, "multi_query_group_num": 2)"},
    {"Baichuan 2 7B", 7'505'973'248, R"("model_type": "baichuan",
        "max_position_embeddings": 4096)"},
    {"Baichuan 2 13B", 13'896'668'160, R"("model_type": "baichuan", "hidden_size": 5120,
        "num_hidden_layers": 40, "num_attention_heads": 40, "intermediate_size": 13696,
        "model_max_length": 4096)"},
    // By hand, h = 4,096: 4 (h^2 + h) + 3 h 11,008 + 2 h a layer, 32 of them, 2 x 103,168 h + h.
    {"InternLM 7B", 7'321'948'160, R"("model_type": "internlm")"},
    {"GLM 4 9B", 9'399'951'360, R"("model_type": "glm", "attention_bias": true)"},
    {"MiniCPM 2B", 2'724'880'896, R"("model_type": "minicpm", "hidden_size": 2304,
        "num_hidden_layers": 40, "num_attention_heads": 36, "intermediate_size": 5760,
        "vocab_size": 122753)"},
    {"Phi 1.5 as first published", 1'418'270'720, R"("model_type": "phi-msft")"},
    {"EXAONE 3.0 7.8B", 7'818'448'896, R"("model_type": "exaone", "num_key_value_heads": 8,
        "intermediate_size": 14336)"},
    // By hand, h = 4,096: 12 h^2 + 13 h + 4 x 64 a layer, 36 of them, 2 x 262,144 h + 2 h.
    {"Persimmon 8B", 9'397'175'296, R"("model_type": "persimmon")"},
    // By hand, h = 1,024: 12 h^2 + 7 h a layer, 20 of them (norm 2 h, feed-forward biases 5 h),
    // 2 x 51,200 h + 51,200 + 2 h.
    {"CodeGen 350M", 356'712'448, R"("model_type": "codegen", "n_embd": 1024, "n_layer": 20,
        "vocab_size": 51200)"},
};

TEST(HfConfig, PublishedParameterCounts) {
  for (const Published& each : kPublished) {
    SCOPED_TRACE(each.name);
    const Model model = model_of("{" + std::string(each.config) + "}", 512);
    EXPECT_EQ(parameter_count(model), each.parameters);
  }
}

// The structure that counts alone do not show.
TEST(HfConfig, HowLayersAreBuilt) {
  EXPECT_EQ(model_of(R"({"model_type": "falcon"})").branches, Branches::kParallelOneNorm);
  EXPECT_EQ(model_of(R"({"model_type": "falcon", "new_decoder_architecture": true,
                         "num_attention_heads": 64, "num_ln_in_parallel_attn": 1})")
                .branches,
            Branches::kParallelOneNorm);
  EXPECT_EQ(model_of(R"({"model_type": "gpt_neox", "use_parallel_residual": false})").branches,
            Branches::kSequential);
  EXPECT_EQ(model_of(R"({"model_type": "olmo2"})").norm_places, NormPlaces::kAfter);
  EXPECT_EQ(model_of(R"({"model_type": "olmo3"})").norm_places, NormPlaces::kAfter);
  const Model seed = model_of(R"({"model_type": "seed_oss", "attention_out_bias": true})");
  EXPECT_TRUE(seed.qkv_bias && seed.attention_out_bias && seed.dropout);
  EXPECT_EQ(model_of(R"({"model_type": "bloom"})").positions, Positions::kNone);
  EXPECT_EQ(model_of(R"({"model_type": "baichuan"})").positions, Positions::kNone);
  const Model mpt = model_of(R"({"model_type": "mpt", "attn_config": {"alibi": false,
                                 "kv_n_heads": 4}, "expansion_ratio": 2})");
  EXPECT_EQ(mpt.positions, Positions::kLearned);
  EXPECT_EQ(mpt.position_rows(), 2048);
  EXPECT_EQ(mpt.kv(), 4);
  EXPECT_EQ(mpt.ffn_width(), 4096);
  EXPECT_EQ(model_of(R"({"model_type": "gpt2", "multi_query": true})").kv(), 1);
  EXPECT_EQ(model_of(R"({"model_type": "gpt2", "attention_head_type": "multihead"})").kv(), 12);
}

// Sums of the tensor sizes in the published checkpoints (model.safetensors.index.json).
TEST(HfConfig, MixturesOfExperts) {
  const Model mixtral = model_of(R"({"model_type": "mixtral"})");
  EXPECT_EQ(mixtral.experts_per_token, 2);
  EXPECT_EQ(parameter_count(mixtral), 46'702'792'704);
  const std::string qwen =
      R"("model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48,
         "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
         "num_experts_per_tok": 8, "moe_intermediate_size": 768, "intermediate_size": 6144,
         "vocab_size": 151936, "tie_word_embeddings": false)";
  const auto read = [&](const std::string& more) { return model_of("{" + qwen + more + "}"); };
  EXPECT_EQ(parameter_count(read("")), 30'532'122'624);
  EXPECT_FALSE(read(R"(, "decoder_sparse_step": 2)").kind_of_layer(0).experts);
  EXPECT_EQ(read(R"(, "mlp_only_layers": [0, 1])").dense_layers, 2);
  EXPECT_THAT(fault_of("{" + qwen + R"(, "mlp_only_layers": [3]})"),
              HasSubstr("'mlp_only_layers'"));
}

// Counts of the models' cards and of their weights; those of DeepSeek-V3 and of GLM-4.5 without the
// biases by which experts are balanced, one of each routed expert, and without the modules that
// predict tokens behind the next; those of Llama 4 and Gemma 3 of the decoder of text.
constexpr Published kMixtures[]{
    {"DeepSeek-V3", 671'026'419'200 - std::int64_t{58} * 256, R"("model_type": "deepseek_v3")"},
    {"DeepSeek-V2", 235'741'434'880, R"("model_type": "deepseek_v2", "hidden_size": 5120,
        "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_hidden_layers": 60,
        "num_attention_heads": 128, "num_key_value_heads": 128, "n_shared_experts": 2,
        "n_routed_experts": 160, "num_experts_per_tok": 6, "first_k_dense_replace": 1,
        "vocab_size": 102400)"},
    {"DeepSeek-V2-Lite", 15'706'484'224, R"("model_type": "deepseek_v2", "hidden_size": 2048,
        "intermediate_size": 10944, "moe_intermediate_size": 1408, "num_hidden_layers": 27,
        "num_attention_heads": 16, "num_key_value_heads": 16, "n_shared_experts": 2,
        "first_k_dense_replace": 1, "vocab_size": 102400, "q_lora_rank": null)"},
    {"Kimi K2", 1'026'408'232'448 - std::int64_t{60} * 384, R"("model_type": "kimi_k2",
        "num_attention_heads": 64, "num_key_value_heads": 64, "n_routed_experts": 384,
        "first_k_dense_replace": 1, "vocab_size": 163840)"},
    {"GPT-OSS 120B", 116'829'156'672, R"("model_type": "gpt_oss")"},
    {"GPT-OSS 20B", 20'914'757'184, R"("model_type": "gpt_oss", "num_hidden_layers": 24,
        "num_local_experts": 32)"},
    {"Llama 4 Scout", 107'769'861'120, R"("model_type": "llama4_text")"},
    {"Llama 4 Maverick", 400'711'848'960, R"("model_type": "llama4_text", "num_local_experts": 128,
        "interleave_moe_layer_step": 2)"},
    {"Qwen1.5 MoE A2.7B", 14'315'784'192, R"("model_type": "qwen2_moe")"},
    {"GLM-4.5-Air", 106'852'245'504, R"("model_type": "glm4_moe", "attention_bias": true)"},
    {"DBRX", 131'596'523'520, R"("model_type": "dbrx", "d_model": 6144, "n_heads": 48,
        "n_layers": 40, "vocab_size": 100352, "max_seq_len": 32768,
        "attn_config": {"kv_n_heads": 8},
        "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4})"},
    {"Gemma 2 9B", 9'241'705'984, R"("model_type": "gemma2", "hidden_size": 3584,
        "num_hidden_layers": 42, "num_attention_heads": 16, "num_key_value_heads": 8,
        "intermediate_size": 14336)"},
    {"Gemma 3 27B", 27'009'346'304, R"("model_type": "gemma3_text", "hidden_size": 5376,
        "num_hidden_layers": 62, "num_attention_heads": 32, "num_key_value_heads": 16,
        "head_dim": 128, "intermediate_size": 21504, "sliding_window": 1024)"},
};

TEST(HfConfig, PublishedParameterCountsOfMixtures) {
  for (const Published& each : kMixtures) {
    SCOPED_TRACE(each.name);
    EXPECT_EQ(parameter_count(model_of("{" + std::string(each.config) + "}", 4096)),
              each.parameters);
  }
}

TEST(HfConfig, LatentsAndRouters) {
  const Model v3 = model_of(R"({"model_type": "deepseek_v3"})");
  EXPECT_EQ(v3.router, Router::kSigmoid);
  EXPECT_EQ(v3.head_size(), 192);
  EXPECT_EQ(v3.dense_layers, 3);
  EXPECT_EQ(model_of(R"({"model_type": "deepseek_v2"})").router, Router::kSoftmax);
  EXPECT_EQ(model_of(R"({"model_type": "deepseek_v2", "q_lora_rank": null})").query_rank, 0);
  EXPECT_THAT(fault_of(R"({"model_type": "deepseek_v3", "attention_bias": true})"),
              HasSubstr("biases beside latents"));
  EXPECT_THAT(fault_of(R"({"model_type": "deepseek_v3", "moe_layer_freq": 2})"),
              HasSubstr("'moe_layer_freq'"));
  EXPECT_THAT(
      read_shipped(R"({"model_type": "deepseek_v3", "num_nextn_predict_layers": 1})", "mine", 512)
          ->remarks,
      ElementsAre("1 module that predicts tokens behind the next "
                  "('num_nextn_predict_layers') is not in the prediction, as Transformers does not "
                  "train it; to predict training with it, set multi_token_prediction: 1"));
  const Model oss = model_of(R"({"model_type": "gpt_oss"})");
  EXPECT_TRUE(oss.sinks && oss.router_bias && oss.has_mlp_bias() && oss.has_qkv_bias());
  EXPECT_TRUE(oss.clamped_activation);
  EXPECT_FALSE(model_of(R"({"model_type": "gpt_oss", "swiglu_limit": 0})").clamped_activation);
  EXPECT_TRUE(model_of(R"({"model_type": "qwen2_moe"})").shared_gate);
}

// No dense decoder: what it has besides, by the key that says so.
TEST(HfConfig, FeaturesThatAreNotModelled) {
  const auto of = [](const std::string& keys) { return fault_of("{" + keys + "}"); };
  EXPECT_EQ(of(R"("model_type": "olmoe", "num_local_experts": 8)"),
            "'model_type' is 'olmoe' with a mixture of experts ('num_local_experts'), which is "
            "not modelled");
  EXPECT_EQ(of(R"("model_type": "jamba", "num_experts": 16, "mamba_d_state": 16)"),
            "'model_type' is 'jamba' with a mixture of experts ('num_experts') and state-space "
            "layers ('mamba_d_state'), which are not modelled");
  EXPECT_THAT(of(R"("model_type": "minicpm3", "n_routed_experts": 160, "kv_lora_rank": 512)"),
              AllOf(HasSubstr("('n_routed_experts')"), HasSubstr("('kv_lora_rank')")));
  EXPECT_THAT(of(R"("model_type": "llava", "vision_config": {"a": 1}, "text_config": {})"),
              AllOf(HasSubstr("a vision tower ('vision_config')"),
                    HasSubstr("give 'text_config' as a file of its own")));
  EXPECT_THAT(of(R"("model_type": "llama", "mm_vision_tower": "clip")"),
              HasSubstr("a vision tower ('mm_vision_tower')"));
  EXPECT_THAT(of(R"("model_type": "roberta")"),
              HasSubstr("'roberta' with a bidirectional encoder,"));
  EXPECT_THAT(of(R"("model_type": "new", "architectures": ["NewForMaskedLM"])"),
              HasSubstr("a bidirectional encoder ('architectures')"));
  EXPECT_THAT(of(R"("model_type": "bart", "is_encoder_decoder": true)"),
              HasSubstr("cross-attention between them ('is_encoder_decoder')"));
  EXPECT_THAT(of(R"("model_type": "yuan")"), HasSubstr("convolutions over neighbouring tokens"));
  EXPECT_EQ(of(R"("model_type": "qwen2", "num_experts": 1, "num_local_experts": null)"),
            "no fault");
  EXPECT_THAT(of(R"("model_type": "opt", "do_layer_norm_before": false)"),
              HasSubstr("'do_layer_norm_before'"));
  EXPECT_THAT(of(R"("model_type": "opt", "word_embed_proj_dim": 512)"),
              HasSubstr("'word_embed_proj_dim'"));
  EXPECT_THAT(of(R"("model_type": "mpt", "attn_config": {"prefix_lm": true})"),
              HasSubstr("'attn_config.prefix_lm'"));
  // Every second layer of GPT-Neo sees 256 tokens.
  EXPECT_THAT(of(R"("model_type": "gpt_neo")"), HasSubstr("'window_size' is 256"));
}

TEST(HfConfig, NullIsAsIfLeftOut) {
  const Model model = model_of(R"({"model_type": "llama", "num_attention_heads": 16,
                                   "num_key_value_heads": null, "head_dim": null})");
  EXPECT_EQ(model.kv(), 16);
  EXPECT_EQ(model.head_size(), 256);
}

}  // namespace foreshard::hf_config_test
