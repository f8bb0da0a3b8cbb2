#include "strategies/graph/model.h"

#include "tests/strategies/graph/written_model.h"
#include "tests/test.h"

namespace foreshard::model_test {

Model catalogue(const std::string& name) {
  return value_of(yaml::Loader(shipped_options())
                      .read_file<Model>(FORESHARD_SOURCE_DIR "/configs/models/" + name + ".yaml"));
}

// GPT-2 small, by hand: a layer has 12 h^2 + 13 h (attention 3h^2 + 3h + h^2 + h, feed-forward
// 8h^2 + 5h, norms 4h), the whole model V h + s h + 2 h besides; 124,439,808 is what the checkpoint
// has.
TEST(ParameterCount, OfGpt2ByHand) {
  const Model gpt2 = written_model(
      "name: GPT-2, layers: 12, hidden: 768, heads: 12, vocabulary: 50257, sequence: 1024");
  EXPECT_EQ(parameter_count(gpt2), 124'439'808);
}

// Sums of the tensor sizes in the published checkpoints (model.safetensors.index.json). GPT-3 has
// no public checkpoint: 96 (12 h^2 + 13 h) + 50,257 h + 2,048 h + 2 h with h = 12,288.
TEST(ParameterCount, IsThePublishedOne) {
  EXPECT_EQ(parameter_count(catalogue("gpt3-175b")), 174'604'259'328);
  EXPECT_EQ(parameter_count(catalogue("llama2-7b")), 6'738'415'616);
  EXPECT_EQ(parameter_count(catalogue("llama2-13b")), 13'015'864'320);
  EXPECT_EQ(parameter_count(catalogue("llama2-70b")), 68'976'648'192);
  EXPECT_EQ(parameter_count(catalogue("llama3-8b")), 8'030'261'248);
  EXPECT_EQ(parameter_count(catalogue("llama3-70b")), 70'553'706'496);
  EXPECT_EQ(parameter_count(catalogue("llama3-405b")), 405'853'388'800);
  EXPECT_EQ(parameter_count(catalogue("mistral-7b")), 7'241'732'096);
  EXPECT_EQ(parameter_count(catalogue("qwen2-7b")), 7'615'616'512);
  EXPECT_EQ(parameter_count(catalogue("qwen2-72b")), 72'706'203'648);
  EXPECT_EQ(parameter_count(catalogue("mixtral-8x7b")), 46'702'792'704);
  EXPECT_EQ(parameter_count(catalogue("mixtral-8x22b")), 140'620'634'112);
  EXPECT_EQ(parameter_count(catalogue("qwen3-30b-a3b")), 30'532'122'624);
  EXPECT_EQ(parameter_count(catalogue("qwen3-235b-a22b")), 235'093'634'560);
  EXPECT_EQ(parameter_count(catalogue("qwen1.5-moe-a2.7b")), 14'315'784'192);
  EXPECT_EQ(parameter_count(catalogue("deepseek-v2-lite")), 15'706'484'224);
  EXPECT_EQ(parameter_count(catalogue("deepseek-v2")), 235'741'434'880);
  EXPECT_EQ(parameter_count(catalogue("gpt-oss-20b")), 20'914'757'184);
  EXPECT_EQ(parameter_count(catalogue("gpt-oss-120b")), 116'829'156'672);
  EXPECT_EQ(parameter_count(catalogue("dbrx")), 131'596'523'520);
  EXPECT_EQ(parameter_count(catalogue("gemma2-9b")), 9'241'705'984);
  // Nemotron-H's report rounds: 8.1B and 56.3B (arXiv 2504.03624, table 1), 46.8B; Mamba-2's 2.7B.
  // A checkpoint of its kind, Nemotron-H-4B-Base-8K, has 8.97 GB in bf16: see NemotronH4B below.
  EXPECT_EQ(parameter_count(catalogue("nemotron-nano-9b-v2")), 8'888'227'328);
  EXPECT_EQ(parameter_count(catalogue("nemotron-h-8b")), 8'100'852'736);
  EXPECT_EQ(parameter_count(catalogue("nemotron-h-47b")), 46'791'554'816);
  EXPECT_EQ(parameter_count(catalogue("nemotron-h-56b")), 56'324'350'464);
  EXPECT_EQ(parameter_count(catalogue("mamba2-2.7b")), 2'702'599'680);
  // Of the checkpoints, but for what is not trained by a gradient: the bias that balances the load
  // of each routed expert.
  EXPECT_EQ(parameter_count(catalogue("deepseek-v3")), 671'026'419'200 - std::int64_t{58} * 256);
  EXPECT_EQ(parameter_count(catalogue("nemotron-3-nano-30b-a3b")),
            31'577'940'288 - std::int64_t{23} * 128);
  EXPECT_EQ(parameter_count(catalogue("kimi-k2")), 1'026'408'232'448 - std::int64_t{60} * 384);
}

// Files of 4.99 and 3.98 GB (huggingface.co/nvidia/Nemotron-H-4B-Base-8K), 2 bytes a parameter.
TEST(ParameterCount, NemotronH4B) {
  Model model = catalogue("nemotron-h-8b");
  model.hidden = 3072;
  model.ffn = 12288;
  model.mamba->heads = 112;
  EXPECT_EQ(parameter_count(model), 4'489'223'040);
  EXPECT_NEAR(2 * static_cast<double>(parameter_count(model)), 8.97e9, 0.01e9);
}

// By hand, the decoder of text of models that see images, too: h = 5,120, attention of 56 heads of
// 128 in and 40 out, experts and the one of all tokens of three matrices of 8,192, every second
// layer dense, of 16,384; two norms a layer; two embeddings of 202,048. "400B": the model card.
TEST(ParameterCount, OfLlama4ByHand) {
  constexpr std::int64_t kH = 5120;
  constexpr std::int64_t kAttention = kH * 56 * 128 + kH * 40 * 128 + 2 * kH;
  constexpr std::int64_t kExpert = 3 * kH * 8192;
  constexpr std::int64_t kOthers = kH * 2 * 202048 + kH;
  EXPECT_EQ(parameter_count(catalogue("llama4-maverick")),
            48 * kAttention + 24 * (129 * kExpert + 128 * kH) + kH * 24 * 3 * 16384 + kOthers);
  EXPECT_EQ(parameter_count(catalogue("llama4-maverick")), 400'711'848'960);
  EXPECT_EQ(parameter_count(catalogue("llama4-scout")),
            48 * (kAttention + 17 * kExpert + 16 * kH) + kOthers);
  EXPECT_EQ(parameter_count(catalogue("gemma3-27b")), 27'009'346'304);
}

// "12.9B active", "39B active": Mistral AI's model cards. By hand for the first: of 32 layers each
// leaves out 6 of 8 experts of three matrices of 4,096 x 14,336.
TEST(ParameterCount, OfWhatATokenIsRoutedTo) {
  EXPECT_EQ(active_parameter_count(catalogue("mixtral-8x7b")),
            46'702'792'704 - std::int64_t{32} * 6 * 3 * 4096 * 14336);
  EXPECT_EQ(active_parameter_count(catalogue("mixtral-8x7b")), 12'879'925'248);
  EXPECT_EQ(active_parameter_count(catalogue("llama3-8b")), 8'030'261'248);
  // "37B": the technical report. "5.13B" and "3.61B" leave out the input embedding: Table 1 of the
  // model card of GPT-OSS.
  EXPECT_EQ(active_parameter_count(catalogue("deepseek-v3")), 37'552'282'624);
  constexpr std::int64_t kEmbedding = std::int64_t{201088} * 2880;
  EXPECT_EQ(active_parameter_count(catalogue("gpt-oss-120b")) - kEmbedding, 5'132'849'472);
  EXPECT_EQ(active_parameter_count(catalogue("gpt-oss-20b")) - kEmbedding, 3'608'307'264);
}

// The module of DeepSeek-V3 that predicts a second token, by hand: h = 7,168; attention from
// latents of 1,536 and 512 + 64 values, 128 heads of 192 and 128; 257 experts of three matrices of
// 2,048; the router; norms of latents, of the layer, and three; the projection. The files have 256
// more, the bias that balances loads, and table and output projection once more: 684.5 billion with
// the rest, "685B" in the model card. "11.5B unique", "2.4B" active with table and output
// projection (README_WEIGHTS.md of deepseek-ai/DeepSeek-V3) are without the projection.
TEST(ParameterCount, OfAPredictionOfASecondTokenByHand) {
  constexpr std::int64_t kH = 7168;
  constexpr std::int64_t kLatent = 512;
  constexpr std::int64_t kQueries = 1536;
  constexpr std::int64_t kAttention = kH * kQueries + kQueries * 128 * 192 + kH * (512 + 64) +
                                      kLatent * 128 * (128 + 128) + kH * 128 * 128 + kQueries +
                                      kLatent;
  constexpr std::int64_t kExpert = 3 * kH * 2048;
  constexpr std::int64_t kLayer = kAttention + 257 * kExpert + 256 * kH + 2 * kH;
  constexpr std::int64_t kProjection = 2 * kH * kH;
  constexpr std::int64_t kTables = 2 * std::int64_t{129'280} * kH;
  const Model without = catalogue("deepseek-v3");
  Model with = without;
  with.multi_token_prediction = 1;
  const std::int64_t unique = parameter_count(with) - parameter_count(without);
  EXPECT_EQ(unique, kLayer + kProjection + 3 * kH);
  EXPECT_EQ(std::int64_t{671'026'419'200} + unique + 256 + kTables, 684'489'845'504);
  EXPECT_NEAR(static_cast<double>(unique - kProjection), 11.5e9, 0.05e9);
  const std::int64_t active = active_parameter_count(with) - active_parameter_count(without);
  EXPECT_EQ(active, unique - 248 * kExpert);
  EXPECT_NEAR(static_cast<double>(active - kProjection + kTables), 2.4e9, 0.05e9);
  with.multi_token_prediction = 2;
  EXPECT_EQ(parameter_count(with) - parameter_count(without), 2 * unique);
}

// By hand for h = 8, f = 6, 5 tokens of a vocabulary of 7: a layer of attention, 4 h h, of two
// matrices, and of 2 h scores a pair of tokens; a projection of 2 h h; the output projection.
TEST(ModelFlops, OfPredictionsByHand) {
  const Model plain = written_model(
      "name: m, layers: 3, hidden: 8, heads: 2, ffn: 6, vocabulary: 7, sequence: 5, positions: "
      "rotary");
  Model model = plain;
  model.multi_token_prediction = 1;
  constexpr double kMatrices = 4 * 8 * 8 + 2 * 8 * 6 + 2 * 8 * 8 + 8 * 7;
  constexpr double kForward = 2 * (5 * kMatrices + 5 * 5 * 2 * 8);
  EXPECT_DOUBLE_EQ(forward_flops(model, 4).in_base() - forward_flops(plain, 4).in_base(),
                   4 * kForward);
  EXPECT_DOUBLE_EQ(model_flops(model, 4).in_base() - model_flops(plain, 4).in_base(),
                   3 * 4 * kForward);
}

// Two of six layers have experts: the third and the sixth; then the first is dense in any case.
TEST(LayerKinds, FollowTheInterval) {
  Model model{.name = "m", .layers = 6, .experts = 4, .expert_interval = 3, .source = ""};
  std::vector<std::int64_t> with;
  for (std::int64_t layer = 0; layer < 6; ++layer)
    if (model.kind_of_layer(layer).experts) with.push_back(layer);
  EXPECT_EQ(with, (std::vector<std::int64_t>{2, 5}));
  EXPECT_TRUE(model.has_dense_layers() && model.has_expert_layers());
  model.dense_layers = 3;
  EXPECT_EQ(model.kind_of_layer(2), LayerKind{});
  model.expert_interval = 1;
  model.dense_layers = 0;
  EXPECT_EQ(model.layer_kinds(), std::vector{LayerKind{.experts = true}});
}

// Not trained are the table (5 rows of 8, which is the output projection too), positions, token
// types, and scale and shift of the last norm.
TEST(ParameterCount, OfFrozenEndsByHand) {
  const Model model = written_model(
      "name: m, layers: 2, hidden: 8, heads: 2, vocabulary: 5, sequence: 6, token_types: 3, "
      "frozen: {embedding: true, head: true}");
  ASSERT_TRUE(checked(model));
  EXPECT_EQ(parameter_count(model) - trained_parameter_count(model), 8 * (5 + 6 + 3 + 2));
}

// Layers in a window that slides over 3 of 8 tokens have 3 (16 - 3) in place of 64 scores, counted
// twice as those of all are; chunks of 4 tokens 2 x 16.
TEST(ModelFlops, OfWindowsByHand) {
  Model model =
      written_model("name: m, layers: 4, hidden: 8, heads: 2, vocabulary: 5, sequence: 8");
  const double all = model_flops(model, 1).in_base();
  model.window = 3;
  model.full_interval = 2;
  EXPECT_EQ(model.kind_of_layer(0), LayerKind{.window = true});
  EXPECT_EQ(model.kind_of_layer(1), LayerKind{});
  EXPECT_EQ(model.layer_kinds(), (std::vector{LayerKind{}, LayerKind{.window = true}}));
  EXPECT_EQ(model.kind_index(0), 1U);
  EXPECT_DOUBLE_EQ(all - model_flops(model, 1).in_base(), 2 * 12 * 8 * (64 - 39));
  model.window = 4;
  model.window_kind = WindowKind::kChunk;
  model.full_interval = 0;
  model.full_layers = 3;
  EXPECT_DOUBLE_EQ(all - model_flops(model, 1).in_base(), 12 * 8 * (64 - 32));
}

// Of 12 tokens in three samples of 2 and one of 6, those of 2 have 2^2 scores, that of 6 has 6^2,
// counted twice as all are: 3 x 4 + 36 = 48 of 12 tokens, 4 for each, in place of 8. As many have
// equal samples of 4. Padded, all tokens are computed, and 3 of 8 are useful.
TEST(ModelFlops, OfPackedSamplesByHand) {
  Model model =
      written_model("name: m, layers: 4, hidden: 8, heads: 2, vocabulary: 5, sequence: 8");
  const double all = model_flops(model, 1).in_base();
  model.samples = Samples{.lengths = {2, 6}, .shares = {0.75, 0.25}};
  EXPECT_DOUBLE_EQ(model.samples->mean_length(), 3);
  EXPECT_DOUBLE_EQ(model.samples->keys_of_query(0), 2);
  EXPECT_EQ(model.samples->equal_length(0), 4);
  EXPECT_DOUBLE_EQ(all - model_flops(model, 1).in_base(), 4 * 12 * 8 * (64 - 8 * 4));
  EXPECT_DOUBLE_EQ(model.samples->useful_share(8), 1);
  // In a window of 2: (3 x 2 x 1 + 6 (2 - 4 / 12)) / 12 = 4/3, as of samples of 3.
  EXPECT_DOUBLE_EQ(model.samples->keys_of_query(2), 4 / 3.0);
  EXPECT_EQ(model.samples->equal_length(2), 3);
  model.samples->layout = SampleLayout::kPadded;
  EXPECT_DOUBLE_EQ(model_flops(model, 1).in_base(), all);
  EXPECT_DOUBLE_EQ(model.samples->useful_share(8), 3 / 8.0);
}

// By hand for h = 8, 2 heads: queries of width 6 through latents of 5, of keys and values of 4 with
// 2 columns that rotate; keys of 6 - 2 columns and values of 3 from latents.
TEST(ModelFlops, OfLatentsByHand) {
  Model model = written_model(
      "name: m, layers: 2, hidden: 8, heads: 2, head_dim: 6, ffn: 3, vocabulary: 7, sequence: 5, "
      "norm: rms-norm, activation: swiglu, positions: rotary, bias: false, tied_embeddings: false, "
      "key_value_rank: 4, query_rank: 5, rotary_dim: 2, value_dim: 3");
  ASSERT_TRUE(checked(model));
  const int queries = 8 * 5 + 5 * 12;
  const int keys = 8 * (4 + 2) + 4 * 2 * (4 + 3);
  const int matrices = queries + keys + 2 * 3 * 8 + 3 * 8 * 3;
  EXPECT_EQ(parameter_count(model), 2 * (matrices + 5 + 4 + 2 * 8) + 2 * 56 + 8);
  EXPECT_DOUBLE_EQ(
      model_flops(model, 1).in_base(),
      2 * (6.0 * 5 * static_cast<double>(matrices) + 6 * 5 * 5 * 2 * (6 + 3)) + 6 * 5 * 56);
  model.query_rank = 0;
  EXPECT_EQ(parameter_count(model), 2 * (matrices - queries + 8 * 12 + 4 + 2 * 8) + 2 * 56 + 8);
}

// Narayanan et al., SC 2021, equation 3 is 96 B s l h^2 (1 + s/6h + V/16lh) with a second forward
// pass; without it 72 B s l h^2 (1 + s/6h + V/12lh), for a GPT with a feed-forward width of 4 h.
TEST(ModelFlops, AreThoseOfTheFormula) {
  const Model model = catalogue("gpt3-175b");
  const double h = 12288;
  const double l = 96;
  const double s = 2048;
  const double v = 50257;
  const double expected = 72 * 1536 * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
  EXPECT_NEAR(model_flops(model, 1536).in_base() / expected, 1, 1e-12);
}

// Grouped queries narrow the key and value projections only: 6 (h h/4 (2) ...) by hand for h = 8,
// 4 heads and 1 key head of width 2, SwiGLU of width 3, s = 5, V = 7:
// per token and layer 8 (8 + 2 + 2) + 8 x 8 + 3 x 8 x 3 = 232 multiply-adds.
TEST(ModelFlops, OfALlamaByHand) {
  const Model model = written_model(
      "name: tiny, layers: 2, hidden: 8, heads: 4, kv_heads: 1, ffn: 3, vocabulary: 7, sequence: "
      "5, norm: rms-norm, activation: swiglu, positions: rotary, bias: false, tied_embeddings: "
      "false, dropout: false");
  const double layer = 6 * 5 * 232 + 12 * 5 * 5 * 8;
  EXPECT_DOUBLE_EQ(model_flops(model, 3).in_base(), 3 * (2 * layer + 6 * 5 * 8 * 7));
  // 8 x 12 + 64 + 8 x 6 + 3 x 8 + two norms of 8; two embeddings of 56; the last norm.
  EXPECT_EQ(parameter_count(model), 2 * (96 + 64 + 48 + 24 + 16) + 2 * 56 + 8);
}

// By hand for h = 8, 4 heads and 1 key head of width 2, SwiGLU of width 3: a layer's biases are
// 8 + 2 x 2 of queries, keys and values, 8 of attention's output, 2 x 3 of gate and up, 8 of down.
TEST(ParameterCount, CountsEachBias) {
  Model model = written_model(
      "name: tiny, layers: 5, hidden: 8, heads: 4, kv_heads: 1, ffn: 3, vocabulary: 7, sequence: "
      "5, activation: swiglu, bias: false");
  const std::int64_t none = parameter_count(model);
  model.qkv_bias = true;
  EXPECT_EQ(parameter_count(model) - none, 5 * 12);
  model.attention_bias = true;
  EXPECT_EQ(parameter_count(model) - none, 5 * (12 + 8));
  model.mlp_bias = true;
  EXPECT_EQ(parameter_count(model) - none, 5 * (12 + 8 + 6 + 8));
  model.bias = true;
  EXPECT_EQ(parameter_count(model) - none, 5 * (12 + 8 + 6 + 8));
}

// By hand for h = 8, 4 heads and 2 key heads of width 2, a vocabulary of 7 and 3 layers: what each
// part adds to a model with RMS norms and no biases.
TEST(ParameterCount, CountsWhatFewFamiliesHave) {
  const Model plain = written_model(
      "name: tiny, layers: 3, hidden: 8, heads: 4, kv_heads: 2, vocabulary: 7, sequence: 5, norm: "
      "rms-norm, positions: learned, bias: false");
  const auto more = [&](auto&& change) {
    Model model = plain;
    change(model);
    return parameter_count(model) - parameter_count(plain);
  };
  EXPECT_EQ(more([](Model& m) { m.qk_norm = QkNorm::kPerHead; }), 3 * 2 * 2);
  EXPECT_EQ(more([](Model& m) { m.qk_norm = QkNorm::kEveryHead; }), 3 * (8 + 4));
  EXPECT_EQ(more([](Model& m) { m.qk_norm = QkNorm::kAllHeads; }), 3 * (8 + 4));
  EXPECT_EQ(more([](Model& m) { m.norm_places = NormPlaces::kAfter; }), 0);
  EXPECT_EQ(more([](Model& m) { m.norm_places = NormPlaces::kBoth; }), 3 * 2 * 8);
  EXPECT_EQ(more([](Model& m) { m.branches = Branches::kParallel; }), 0);
  EXPECT_EQ(more([](Model& m) { m.branches = Branches::kParallelOneNorm; }), -3 * 8);
  EXPECT_EQ(more([](Model& m) { m.norm = Norm::kLayerNorm; }), (3 * 2 + 1) * 8);
  EXPECT_EQ(more([](Model& m) { m.norm = Norm::kLayerNormScale; }), 0);
  EXPECT_EQ(more([](Model& m) { m.norm = Norm::kLayerNormPlain; }), -(3 * 2 + 1) * 8);
  EXPECT_EQ(more([](Model& m) { m.attention_out_bias = true; }), 3 * 8);
  EXPECT_EQ(more([](Model& m) { m.head_bias = true; }), 7);
  EXPECT_EQ(more([](Model& m) { m.embedding_norm = true; }), 8);
  EXPECT_EQ(more([](Model& m) { m.position_table = 6; }), 8);
  EXPECT_EQ(more([](Model& m) { m.sinks = true; }), 3 * 4);
}

// By hand for h = 8 and four experts of width 6, two matrices each: biases of 6 + 8 each, one of
// each expert in the router; a gate of h.
TEST(ParameterCount, CountsWhatExpertsHave) {
  const Model plain = written_model(
      "name: tiny, layers: 3, hidden: 8, heads: 4, vocabulary: 7, sequence: 5, bias: false, "
      "experts: 4, experts_per_token: 2, expert_ffn: 6, dense_layers: 1");
  Model model = plain;
  model.mlp_bias = true;
  EXPECT_EQ(parameter_count(model) - parameter_count(plain), 2 * 4 * (6 + 8) + (32 + 8));
  EXPECT_EQ(active_parameter_count(model) - active_parameter_count(plain),
            2 * 2 * (6 + 8) + (32 + 8));
  model = plain;
  model.router_bias = true;
  EXPECT_EQ(parameter_count(model) - parameter_count(plain), 2 * 4);
  model = plain;
  model.shared_ffn = 5;
  const std::int64_t shared = parameter_count(model);
  EXPECT_EQ(shared - parameter_count(plain), 2 * 2 * 8 * 5);
  model.shared_gate = true;
  EXPECT_EQ(parameter_count(model) - shared, 2 * 8);
}

}  // namespace foreshard::model_test
