// What a person can get wrong about a model, and about strategies that it does not bear; as in
// bad_input_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "tests/cli/bad_study.h"

namespace foreshard::cli {
namespace {

using testing::HasSubstr;

TEST(BadInput, Adapters) {
  const std::string layers =
      "  name: small\n  layers: 8\n  hidden: 1024\n  heads: 16\n  vocabulary: 1000\n"
      "  sequence: 512\n";
  const auto model = [&](const std::string& lines) { return study({{"model", layers + lines}}); };
  expect_refused(model("  adapters: {rank: 0}\n"),
                 "study.yaml:13:20: error: an adapter has a rank of 1 or more",
                 "leave out adapters to train all parameters");
  expect_refused(model("  adapters: {targets: [qkv]}\n"), "'rank'");
  expect_refused(model("  adapters: {rank: 8, targets: [mlp]}\n"), "cannot be 'mlp'", "'mlp-up'");
  expect_refused(model("  adapters: {rank: 8, targets: []}\n"), "name a layer", "[qkv,");
  expect_refused(model("  adapters: {rank: 8, targets: [qkv, qkv]}\n"), "a layer is named twice");
  expect_refused(model("  adapters: {rank: 7}\n"), "adapters of rank 7 cannot be split 2 ways",
                 "a multiple of 2");
  expect_refused(model("  bias: false\n  experts: 4\n  adapters: {rank: 8}\n"),
                 "adapters of experts are not modelled", "targets: [qkv, attention-out]");
  expect_refused(model("  experts: 4\n  adapters: {rank: 8, targets: [qkv], base: nf4}\n"),
                 "experts in 4 bits (adapters.base: nf4) are not modelled");
  const auto both = [&](const std::string& strategy) {
    return study({{"model", layers + "  adapters: {rank: 8, base: nf4}\n"},
                  {"strategy", "  data_parallel: 8\n  global_batch: 16\n" + strategy}});
  };
  expect_refused(both("  quantization: mxfp8\n"), "are multiplied in 16 bits, not by 'mxfp8'",
                 "leave out quantization");
  expect_refused(both("  precision: fp32\n"), "are brought to 16 bits, not to fp32",
                 "set precision: bf16");
}

TEST(BadInput, FrozenParts) {
  const std::string layers =
      "  name: small\n  layers: 8\n  hidden: 1024\n  heads: 16\n  vocabulary: 1000\n"
      "  sequence: 512\n";
  const auto model = [&](const std::string& lines) { return study({{"model", layers + lines}}); };
  expect_refused(model("  frozen: {}\n"), "frozen names nothing", "leave it out");
  expect_refused(model("  frozen: {layers: 9}\n"), "frozen.layers 9 is more than the 8 layers");
  expect_refused(model("  frozen: {embedding: true}\n"), "freeze both or none");
  expect_refused(model("  frozen: {embedding: true, head: true, layers: 8}\n"),
                 "all of the model is frozen", "mode: forward");
  expect_refused(model("  frozen: {layers: 2}\n  adapters: {rank: 8}\n"),
                 "adapters freeze all other parameters", "leave out frozen");
  expect_refused(
      study(
          {{"model", layers + "  tied_embeddings: false\n  frozen: {embedding: true, layers: 4}\n"},
           {"strategy", "  pipeline_parallel: 4\n  global_batch: 16\n"}}),
      "nothing of the first of 4 stages is trained", "give the first stage more than 4 layers");
}

TEST(BadInput, Experts) {
  const std::string layers =
      "  name: small\n  layers: 8\n  hidden: 1024\n  heads: 16\n  vocabulary: 1000\n"
      "  sequence: 512\n  bias: false\n";
  const auto model = [&](const std::string& lines) { return study({{"model", layers + lines}}); };
  const auto both = [&](const std::string& lines) {
    return study({{"model", layers + "  experts: 6\n  experts_per_token: 2\n"},
                  {"strategy", "  data_parallel: 4\n  global_batch: 16\n" + lines}});
  };
  expect_refused(model("  experts: 4\n  experts_per_token: 5\n"),
                 "experts_per_token 5 is more than the 4 experts of a layer");
  expect_refused(model("  shared_ffn: 64\n"), "shared_ffn has no meaning without experts");
  expect_refused(model("  experts: 4\n  dense_layers: 8\n"), "leave none of 8 layers with experts");
  expect_refused(model("  experts: 4\n  expert_ffn: 64\n  ffn: 128\n"), "leave out ffn");
  expect_refused(both("  expert_parallel: 4\n"), "6 experts cannot be shared 4 ways",
                 "use a divisor of 6");
  expect_refused(both("  expert_parallel: 3\n"), "= 4 ranks do not divide into groups of 3",
                 "so that the ranks are a multiple of 3");
  expect_refused(both("  capacity_factor: 0.5\n"), "capacity_factor");
  expect_refused(both("  capacity_factor: 2\n  expert_load: {zipf: 0.5}\n"),
                 "all experts have as many slots, whoever chooses them", "leave out one");
  expect_refused(both("  expert_load: {layers: [[0.5, 0.5]]}\n"),
                 "a list has 2 shares, and a layer 6 experts", "give 6 shares");
  expect_refused(both("  expert_load: {layers: [[0.5, 0.1, 0.1, 0.1, 0.1, 0.2]]}\n"),
                 "add up to 1, not 1.1");
  expect_refused(both("  expert_load: {draws: 3}\n"), "without zipf nothing is drawn");
  expect_refused(both("  tensor_parallel: 2\n  expert_tensor_parallel: 3\n"),
                 "do not divide into groups of 1 x 3 = 3", "so that the ranks are a multiple of 3");
  expect_refused(both("  tensor_parallel: 2\n  expert_tensor_parallel: 1\n  expert_parallel: 2\n"),
                 "without sequence_parallel all have the same", "set sequence_parallel: true");
  expect_refused(strategy("  data_parallel: 4\n  global_batch: 16\n  expert_parallel: 2\n"),
                 "model 'small' has no experts", "leave it out");
  expect_refused(both("  overlap_experts: true\n"), "without expert_parallel no tokens",
                 "leave it");
  expect_refused(both("  expert_parallel: 2\n  overlap_experts: true\n  schedule: gpipe\n"),
                 "'gpipe' has no forward pass that can run beside", "set schedule: 1f1b");
  expect_refused(both("  expert_parallel: 2\n  overlap_experts: true\n  zero_stage: 3\n"),
                 "gathered for one pass while another runs", "set zero_stage: 2");
  expect_refused(both("  token_dispatcher: deepep\n"), "without expert_parallel no tokens",
                 "set expert_parallel");
  expect_refused(both("  expert_parallel: 2\n  token_dispatcher: deepep\n  capacity_factor: 2\n"),
                 "'deepep' sends the tokens that there are", "leave out one");
  expect_refused(both("  expert_parallel: 2\n  token_dispatcher: flex\n"), "token_dispatcher");
  const std::string offloaded = "  zero_stage: 3\n  offload_optimizer: cpu\n  offload_parameters: ";
  expect_refused(study({{"model", layers + "  experts: 4\n  experts_per_token: 2\n"},
                        {"strategy",
                         "  data_parallel: 4\n  global_batch: 16\n"
                         "  expert_parallel: 4\n" +
                             offloaded + "true\n"}}),
                 "no rank shares its experts with another", "use more data_parallel ranks");
  expect_refused(model("  experts: 6\n  expert_groups: 4\n"), "6 experts do not form");
  expect_refused(model("  experts: 8\n  experts_per_token: 4\n  expert_groups: 4\n"),
                 "have fewer experts than experts_per_token 4");
}

TEST(BadInput, Encoders) {
  const auto given = [](const std::string& model, const std::string& lines = {}) {
    return study({{"model", "  name: small\n  layers: 8\n  hidden: 256\n  heads: 8\n" + model},
                  {"strategy", "  data_parallel: 4\n  global_batch: 16\n" + lines}});
  };
  const std::string of_tokens = "  vocabulary: 1024\n  sequence: 128\n";
  const std::string of_images = "  sequence: 197\n  causal: false\n  head: none\n  classes: 10\n";
  expect_refused(given(of_images + "  image: {size: 225, patch: 16}\n"),
                 "does not divide into squares of 16");
  expect_refused(given(of_images + "  image: {size: 256, patch: 16}\n"), "set sequence: 257");
  expect_refused(given(of_tokens + "  encoder: {layers: 0, sequence: 64}\n"), "1 layer or more",
                 "leave out encoder");
  expect_refused(given(of_tokens + "  encoder: {layers: 8, sequence: 64}\n"), "all 8 layers are",
                 "causal: false");
  expect_refused(given(of_tokens + "  classes: 2\n"), "classes is for an encoder",
                 "set causal: false");
  expect_refused(
      given(of_tokens + "  encoder: {layers: 4, sequence: 64}\n", "  pipeline_parallel: 2\n"),
      "a pipeline over encoder and decoder", "set pipeline_parallel: 1");
}

TEST(BadInput, Predictions) {
  const auto given = [](const std::string& model, const std::string& lines = {}) {
    return study({{"model",
                   "  name: small\n  layers: 8\n  hidden: 256\n  heads: 8\n"
                   "  vocabulary: 1024\n  sequence: 128\n" +
                       model},
                  {"strategy", "  data_parallel: 8\n  global_batch: 16\n" + lines}});
  };
  const std::string one = "  positions: rotary\n  multi_token_prediction: 1\n";
  expect_refused(given("  multi_token_prediction: -1\n"), "multi_token_prediction");
  expect_refused(given("  multi_token_prediction: 17\n"), "multi_token_prediction");
  expect_refused(given("  multi_token_prediction: 1\n"), "learned positions",
                 "set positions: rotary or none");
  expect_refused(given(one + "  embedding_norm: true\n"), "normalises embeddings itself",
                 "leave out embedding_norm");
  expect_refused(given(one, "  mode: forward\n"), "a forward pass alone leaves them out",
                 "multi_token_prediction: 0");
}

TEST(BadInput, Context) {
  const auto given = [](const std::string& lines) {
    return strategy("  global_batch: 16\n" + lines);
  };
  expect_refused(given("  context_exchange: all-to-all\n"), "each rank has whole sequences",
                 "set context_parallel");
  expect_refused(given("  context_parallel: 3\n"), "cannot be cut into 2 x 3 parts",
                 "set the sequence to a multiple of 6");
  expect_refused(
      given("  context_parallel: 4\n  tensor_parallel: 8\n  context_exchange: all-to-all\n"),
      "key/value heads cannot be exchanged", "context_parallel lower");
  expect_refused(given("  context_parallel: 2\n  context_exchange: rings\n"), "rings");
  expect_refused(given("  context_heads: 2\n"), "each rank has whole sequences",
                 "set context_parallel");
  expect_refused(given("  context_parallel: 8\n  context_exchange: ring\n  context_heads: 3\n"),
                 "context_parallel 8 does not divide into groups of 3", "use a divisor");
  expect_refused(given("  context_parallel: 8\n  context_exchange: ring\n  context_heads: 8\n"),
                 "all ranks of a sequence exchange tokens for heads",
                 "set context_exchange: all-to-all");
  expect_refused(
      given("  context_parallel: 4\n  context_exchange: all-to-all\n  context_heads: 2\n"),
      "all ranks of a sequence exchange tokens for heads", "set context_exchange: ring");
}

TEST(BadInput, Attention) {
  const std::string layers =
      "  name: small\n  layers: 8\n  hidden: 1024\n  heads: 16\n  vocabulary: 1000\n"
      "  sequence: 512\n  bias: false\n  positions: rotary\n";
  const auto model = [&](const std::string& lines) { return study({{"model", layers + lines}}); };
  const auto both = [&](const std::string& lines, const std::string& strategy) {
    return study({{"model", layers + lines}, {"strategy", "  global_batch: 16\n" + strategy}});
  };
  const std::string latents = "  key_value_rank: 32\n  rotary_dim: 16\n  value_dim: 64\n";
  expect_refused(model("  window: 512\n"), "window 512 holds the whole sequence", "leave it out");
  expect_refused(model("  full_interval: 2\n"), "full_interval has no meaning without a window");
  expect_refused(model("  window: 8\n  window_kind: hopping\n"), "hopping");
  expect_refused(model("  rotary_dim: 16\n"), "without latents", "give key_value_rank");
  expect_refused(model(latents + "  kv_heads: 4\n"), "leave out kv_heads");
  expect_refused(model(latents + "  sinks: true\n"), "leave out qk_norm, sinks");
  expect_refused(
      both("  window: 8\n", "  context_parallel: 2\n  context_exchange: overlapped-all-gather\n"),
      "within a window beside the exchange", "set context_exchange: all-gather");
  expect_refused(both("  window: 8\n", "  context_parallel: 2\n  context_exchange: ring\n"),
                 "within a window beside the exchange", "set context_exchange: all-gather");
  const std::string packed = "  samples: {lengths: [64, 256], shares: [0.5, 0.5]}\n";
  expect_refused(both(packed, "  context_parallel: 2\n  context_exchange: overlapped-all-gather\n"),
                 "within packed samples beside the exchange", "set context_exchange: all-gather");
  expect_refused(both(packed, "  framework: {extends: generic, attention: unfused}\n"),
                 "within packed samples without a fused kernel", "use another framework");
  expect_refused(model("  samples: {lengths: [64], shares: [0.5, 0.5]}\n"),
                 "1 lengths need as many shares, not 2");
  expect_refused(model("  samples: {lengths: [64, 32], shares: [0.5, 0.5]}\n"),
                 "lengths are ascending");
  expect_refused(model("  samples: {lengths: [64, 96], shares: [0.5, 0.25]}\n"),
                 "add up to 1, not 0.75");
  expect_refused(model("  samples: {lengths: [64, 513], shares: [0.5, 0.5]}\n"),
                 "a sample of 513 tokens is longer than its sequence of 512");
  expect_refused(both("  sinks: true\n", "  context_parallel: 2\n  context_exchange: ring\n"),
                 "with sinks with keys in a ring", "set context_exchange: all-gather");
  expect_refused(both(latents,
                      "  context_parallel: 4\n  context_exchange: ring\n"
                      "  context_heads: 2\n"),
                 "from latents (key_value_rank) with heads exchanged", "leave it out");
  expect_refused(both(latents, "  context_parallel: 2\n  context_exchange: all-to-all\n"),
                 "from latents (key_value_rank) with heads exchanged",
                 "set context_exchange: all-gather");
  expect_refused(both("  sinks: true\n", "  framework: megatron-lm-sc21\n"),
                 "attention with sinks without a fused kernel", "use another framework");
}

TEST(BadInput, StateSpaces) {
  const std::string layers =
      "  name: small\n  layers: 4\n  hidden: 1024\n  heads: 16\n  vocabulary: 1000\n"
      "  sequence: 512\n  bias: false\n  positions: none\n";
  const std::string pattern = "  pattern: M*M-\n";
  const auto model = [&](const std::string& lines) { return study({{"model", layers + lines}}); };
  const auto mamba = [&](const std::string& lines) {
    return model(pattern + "  mamba:\n    heads: 32\n" + lines);
  };
  expect_refused(model("  mamba:\n    heads: 32\n"), "no meaning without a pattern",
                 "give pattern");
  expect_refused(model(pattern), "pattern has M", "give the sizes of its layers (mamba)");
  expect_refused(model("  pattern: M*Mx\n  mamba:\n    heads: 32\n"), "'x' for layer 3",
                 "use M (Mamba)");
  expect_refused(model("  pattern: M*M\n  mamba:\n    heads: 32\n"), "3 letters for 4 layers",
                 "one for each layer");
  expect_refused(mamba("    state: 0\n"), "a state in each head", "give 1 or more");
  expect_refused(mamba("    groups: 5\n"), "32 heads do not form 5 groups", "use a divisor");
  expect_refused(mamba("    sate: 16\n"), "sate", "did you mean 'state'");
  const auto both = [&](const std::string& strategy) {
    return study({{"model", layers + pattern + "  mamba:\n    heads: 32\n    groups: 2\n"},
                  {"strategy", "  global_batch: 16\n" + strategy}});
  };
  expect_refused(both("  tensor_parallel: 4\n"),
                 "2 groups of heads of the Mamba layers (mamba.groups) cannot be split 4 ways",
                 "use one of 1, 2");
  expect_refused(both("  context_parallel: 2\n"), "Mamba layers of sequences that ranks share",
                 "set context_parallel: 1");
}

}  // namespace
}  // namespace foreshard::cli
