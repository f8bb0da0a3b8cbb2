// What a person can get wrong: each case ends with exit code 2, one message that names the place
// and the remedy, nothing on stdout, and nothing partly written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "tests/cli/bad_study.h"

namespace foreshard::cli {
namespace {

using testing::HasSubstr;

std::string cluster_with_nvlink(const std::string& bandwidth) {
  return study({{"cluster",
                 "  nodes: 1\n  node:\n    device: A100-SXM-80GB\n    gpus: 16\n"
                 "    nvlink: {bandwidth: " +
                     bandwidth + "}\n"}});
}

TEST(BadInput, TheStudyOfTheseTestsIsSound) {
  const TemporaryFolder folder;
  const Outcome outcome = foreshard("check '" + folder.write("study.yaml", study()).string() + "'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST(BadInput, UnknownKey) {
  expect_refused(strategy("  tensor_paralel: 2\n  global_batch: 16\n"),
                 "study.yaml:14:3: error: unknown key 'tensor_paralel'",
                 "did you mean 'tensor_parallel'?");
}

TEST(BadInput, PrecisionOfProductsAlone) {
  const std::string fp8 = strategy("  precision: fp8\n  data_parallel: 16\n  global_batch: 16\n");
  expect_refused(fp8, "study.yaml:14:14: error: activations and gradients are not held in fp8",
                 "quantization: fp8-current");
  const TemporaryFolder folder;
  const std::string file = folder.write("study.yaml", fp8).string();
  for (const char* command : {"search", "check", "export --program -"}) {
    const Outcome outcome = foreshard(std::string(command) + " '" + file + "'");
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_THAT(outcome.err, HasSubstr("14:14: error: activations and gradients")) << command;
  }
}

TEST(BadInput, QuantizationThatTheDeviceDoesNotHave) {
  const std::string keys = "  data_parallel: 16\n  global_batch: 16\n  quantization: ";
  expect_refused(strategy(keys + "fp8-current\n"),
                 "error: device 'A100-SXM-80GB' has no fp8 products, which 'fp8-current' needs",
                 "set quantization: none");
  expect_refused(strategy(keys + "fp9\n"),
                 "study.yaml:16:17: error: 'quantization' cannot be 'fp9'", "'fp8-current'");
  expect_refused(strategy(keys + "none\n  quantized_parameters: true\n"),
                 "error: nothing is quantized", "set quantization: fp8-current");
  expect_refused(strategy(keys + "fp8-current\n  precision: fp32\n"),
                 "error: 'fp8-current' quantizes tensors of 16 bits, not fp32", "precision: bf16");
  const auto on_h100 = [](const std::string& recipe) {
    return foreshard(
        "simulate configs/studies/llama3-8b-h100-8-fp8.yaml --set strategy.quantization=" + recipe);
  };
  for (const auto& [recipe, fault] :
       {std::pair("mxfp8", "the matrix units of device 'H100-SXM' do not scale"),
        std::pair("nvfp4", "device 'H100-SXM' has no fp4 products, which 'nvfp4' needs")}) {
    const Outcome outcome = on_h100(recipe);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(fault));
  }
}

TEST(BadInput, GraphQuantizedForAnotherDevice) {
  const TemporaryFolder folder;
  folder.write("graph.yaml",
               "name: narrow\ntensors:\n"
               "  - {name: x, role: input, dtype: bf16, shape: [64, 32]}\n"
               "  - {name: w, role: parameter, dtype: bf16, shape: [32, 16]}\n"
               "operators:\n"
               "  - {op: quantize, name: narrow, inputs: [x]}\n"
               "  - {op: matmul, name: y, inputs: [narrow, w], settings: {to: bf16}}\n"
               "  - {op: reduce, name: loss, inputs: [y], settings: {operation: mean}}\n"
               "outputs: [loss]\n");
  const std::string file =
      folder
          .write("study.yaml",
                 "cluster: {nodes: 1, node: dgx-a100-80gb}\ngraph: {file: graph.yaml}\n"
                 "strategy: {micro_batch: 64, global_batch: 64}\n")
          .string();
  const Outcome outcome = foreshard("simulate '" + file + "'");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr("device 'A100-SXM-80GB' has no fp8 products, which 'fp8-current' needs"));
  EXPECT_THAT(outcome.err, HasSubstr("another recipe"));
  const Outcome able = foreshard("simulate '" + file + "' --set cluster.node=dgx-h100");
  EXPECT_EQ(able.code, 0) << able.err;
}

TEST(BadInput, SetsOfShards) {
  const std::string keys = "  data_parallel: 8\n  global_batch: 16\n  zero_stage: ";
  expect_refused(strategy(keys + "0\n  shard_replicas: 2\n"),
                 "study.yaml:17:19: error: without ZeRO nothing is sharded", "set zero_stage: 3");
  expect_refused(strategy(keys + "3\n  shard_replicas: 3\n"),
                 "data_parallel 8 does not divide into 3 sets", "use a divisor of data_parallel");
  expect_refused(strategy(keys + "3\n  shard_replicas: 8\n"),
                 "each of 8 sets would lie on one rank, whole", "set zero_stage: 0");
}

TEST(BadInput, UnquantizedLayers) {
  const std::string keys = "  data_parallel: 8\n  global_batch: 16\n";
  expect_refused(strategy(keys + "  unquantized_layers: {first: 1}\n"), "no layer is quantized",
                 "set quantization");
  expect_refused(
      strategy(keys + "  quantization: mxfp8\n  unquantized_layers: {first: 4, last: 4}\n"),
      "leave none of 8 to be quantized", "set quantization: none");
  expect_refused(strategy(keys + "  quantization: mxfp8\n  unquantized_layers: {frist: 4}\n"),
                 "frist", "first");
}

TEST(BadInput, RecomputationOfParts) {
  const std::string keys = "  data_parallel: 8\n  global_batch: 16\n  recompute: ";
  expect_refused(strategy(keys + "full\n  recompute_parts: [norm]\n"),
                 "study.yaml:17:20: error: recompute: full does not go by parts",
                 "set recompute: selective");
  expect_refused(strategy(keys + "selective\n  recompute_parts: []\n"),
                 "recompute: selective recomputes some part", "set recompute: none");
  expect_refused(strategy(keys + "selective\n  recompute_parts: [mlp]\n"), "cannot be 'mlp'",
                 "'mlp-up'");
  expect_refused(strategy(keys + "selective\n  recompute_parts: [norm, rope]\n"),
                 "no layer of model 'small' has a part 'rope'", "leave it out");
  expect_refused(strategy(keys + "none\n  recompute_layers: 2\n"),
                 "with recompute: none no layer is recomputed", "set recompute: full");
}

TEST(BadInput, Optimizers) {
  const auto with = [&](const std::string& optimizer, const std::string& more = "") {
    return strategy("  data_parallel: 8\n  global_batch: 16\n" + more + "  optimizer: {" +
                    optimizer + "}\n");
  };
  expect_refused(with("rule: adagrad"), "no optimizer is called 'adagrad'", "use one of adam");
  expect_refused(with("first_moment: tf32"), "tf32 is no type for it",
                 "use one of fp32, fp16, bf16, fp8");
  expect_refused(with("master: fp8"), "fp8 is no type for it", "use one of fp32, fp16, bf16");
  expect_refused(with("master: bf16", "  precision: fp32\n"),
                 "a master copy in bf16 has fewer bits than parameters in fp32",
                 "leave master out");
  expect_refused(with("rule: muon, first_moment: bf16"), "'muon' has it in a type of its own",
                 "set rule: adam");
  expect_refused(with("rule: lamb, master: bf16"), "'lamb' has it in a type of its own",
                 "set rule: adam, adam-8bit");
  expect_refused(with("rule: sgd, block: 64"), "'sgd' has no blocks", "set rule: adam-8bit");
  expect_refused(with("rule: adam-8bit, remainders: true"), "'adam-8bit' keeps its copy whole",
                 "leave it out");
  expect_refused(with("master: fp16, remainders: true"), "a master copy in fp16 is kept whole",
                 "leave it out");
  expect_refused(with("remainders: true", "  precision: fp16\n"),
                 "parameters in fp16 are not the upper half", "set precision: bf16");
  expect_refused(with("rule: lamb", "  framework: {name: x, optimizer: loop}\n"),
                 "a loop of Adam's operations", "set framework.optimizer: fused");
  expect_refused(with("second_moment: bf16", "  mode: forward\n"),
                 "mode: forward updates no parameters", "leave optimizer out");
}

TEST(BadInput, Offloading) {
  const std::string keys = "  data_parallel: 8\n  global_batch: 16\n  ";
  expect_refused(strategy(keys + "offload_activation_layers: 9\n"),
                 "9 layers are offloaded, but the model has 8", "use at most 8");
  expect_refused(strategy(keys + "offload_activation_layers: -1\n"), "offload_activation_layers");
  expect_refused(strategy(keys + "offload_activation_layers: 1\n  mode: forward\n"),
                 "mode: forward keeps no activations", "leave it out");
  expect_refused(strategy(keys + "offload_optimizer: disk\n"), "cannot be 'disk'", "'cpu'");
  expect_refused(strategy(keys + "offload_optimizer: cpu\n  optimizer: {rule: muon}\n"),
                 "is modelled of adam with states in fp32 alone, not of muon");
  expect_refused(strategy(keys + "offload_optimizer: cpu\n  mode: forward\n"),
                 "mode: forward takes no step");
  expect_refused(strategy(keys + "offload_parameters: true\n  zero_stage: 2\n"),
                 "parameters that no rank has shards of are needed on the device",
                 "set zero_stage: 3");
  expect_refused(strategy(keys + "offload_parameters: true\n  offload_optimizer: cpu\n"
                                 "  zero_stage: 3\n  framework: deepspeed-zero3-2021\n"),
                 "gathers parameters one by one");
  expect_refused(strategy(keys + "offload_parameters: true\n  offload_optimizer: cpu\n"
                                 "  zero_stage: 3\n  quantization: fp8-current\n"
                                 "  quantized_parameters: true\n"),
                 "would be quantized on the host, which is not modelled");
  expect_refused(strategy(keys + "offload_parameters: true\n  zero_stage: 3\n"),
                 "the step would have to come to the parameters", "set offload_optimizer: cpu");
}

// What a schedule of the user's own gets wrong has the stage, the pass and a remedy.
TEST(BadInput, Schedules) {
  const auto given = [](const std::string& lines) {
    return strategy("  pipeline_parallel: 2\n  data_parallel: 4\n  global_batch: 8\n" + lines);
  };
  const auto actions = [&](const std::string& first, const std::string& second) {
    return given("  schedule: custom\n  schedule_actions:\n    - " + first + "\n    - " + second +
                 "\n");
  };
  expect_refused(actions("F0 B0 F1 B1", "F1 B1 F0 B0"),
                 "stage 0 waits for ever at B0: stage 1 comes to B0 behind F1",
                 "let stage 1 run B0 before F1");
  expect_refused(actions("F0 F1 W0 I0 I1 W1", "F0 B0 F1 B1"),
                 "study.yaml:19:5: error: custom: stage 0 W0 runs before I0", "move W0 behind I0");
  expect_refused(actions("F0 B0 F1", "F0 B0 F1 B1"), "stage 0 never runs B1", "add it");
  expect_refused(actions("F0 B0 F2 B2", "F0 B0 F1 B1"), "F2 is of no micro-batch of the 2",
                 "global_batch");
  expect_refused(given("  schedule: custom\n"), "schedule 'custom' has no actions",
                 "schedule_file");
  expect_refused(given("  schedule: zb-h1\n  schedule_actions: [F0 B0, F0 B0]\n"),
                 "schedule 'zb-h1' has an order of its own", "set schedule: custom");
  expect_refused(given("  schedule: custom\n  schedule_file: nowhere.csv\n"), "nowhere.csv");
  expect_refused(given("  schedule: dualpipe\n"), "DualPipe keeps each of p stages on two",
                 "an even number of ranks, 4 or more");
  expect_refused(strategy("  pipeline_parallel: 4\n  data_parallel: 2\n  global_batch: 8\n"
                          "  schedule: dualpipe\n"),
                 "runs as DualPipeV does on half of them",
                 "set schedule: dualpipe-v, virtual_stages: 2, pipeline_parallel: 2, "
                 "data_parallel: 4");
  expect_refused(given("  schedule: zb-v\n"), "needs 2 chunks per stage, got 1", "1f1b");
  expect_refused(given("  schedule: zb-h1\n  virtual_stages: 2\n"),
                 "schedule 'zb-h1' has one stage per rank, not 2", "interleaved");
  expect_refused(given("  schedule: dualpipe-v\n  virtual_stages: 2\n"),
                 "needs at least 4 micro-batches for 2 stages", "raise global_batch");
  expect_refused(given("  schedule: zb-h1\n  pass_times: [1, 1, 1]\n"), "does not go by times",
                 "zb-1p");
  expect_refused(given("  schedule: zb-1p\n  pass_times: [1, 0, 1]\n"), "three times above 0");
  expect_refused(given("  schedule: dualpipe-w\n"), "no schedule 'dualpipe-w'",
                 "did you mean 'dualpipe-v'?");
  expect_refused(strategy("  data_parallel: 8\n  global_batch: 8\n  schedule: zb-h1\n"),
                 "needs at least 2 stages, got 1", "use 1f1b");
}

TEST(BadInput, MissingUnit) {
  expect_refused(cluster_with_nvlink("300"), "unit", "GB/s");
}

// Gb would be gigabits of a size, and there is no such suffix for a rate of bytes either.
TEST(BadInput, GigabitsForGigabytes) {
  expect_refused(cluster_with_nvlink("300 Gb"), "Gb");
}

TEST(BadInput, MoreRanksThanDevices) {
  expect_refused(
      strategy("  tensor_parallel: 2\n  pipeline_parallel: 2\n  data_parallel: 8\n"
               "  global_batch: 16\n"),
      "tensor_parallel 2 x pipeline_parallel 2 x data_parallel 8 = 32 ranks, but there are 16 "
      "devices for them",
      "data_parallel: 4 would use them all");
}

TEST(BadInput, HeadsThatDoNotDivide) {
  expect_refused(study({{"model",
                         "  name: odd\n  layers: 8\n  hidden: 960\n  heads: 15\n"
                         "  vocabulary: 1000\n  sequence: 512\n"}}),
                 "15 attention heads cannot be split 2 ways", "use one of 1, 3, 5, 15");
}

TEST(BadInput, LayersThatDoNotDivide) {
  expect_refused(study({{"model",
                         "  name: odd\n  layers: 7\n  hidden: 1024\n  heads: 16\n"
                         "  vocabulary: 1000\n  sequence: 512\n"}}),
                 "7 layers do not divide into 2 equal stages", "layers_per_stage: [4, 3]");
}

TEST(BadInput, ZeroOrNegativeBandwidth) {
  expect_refused(cluster_with_nvlink("0 GB/s"), "bandwidth");
  expect_refused(cluster_with_nvlink("-300 GB/s"), "bandwidth");
}

TEST(BadInput, NoNumber) {
  expect_refused(cluster_with_nvlink(".nan"), "bandwidth");
  expect_refused(cluster_with_nvlink("nan GB/s"), "bandwidth");
}

// The second node's network is down: the strategy needs it, and routes end at the first node.
TEST(BadInput, NoRoute) {
  expect_refused(study({{"cluster",
                         "  name: cut\n  nodes: 2\n  node: dgx-a100-80gb\n"
                         "  fabric: {kind: single-switch}\n  down: [\"node1/nic*\"]\n"}}),
                 "node1");
}

TEST(BadInput, MoreRanksThanDevicesThatWork) {
  expect_refused(study({{"cluster",
                         "  name: cut\n  nodes: 2\n  node: dgx-a100-80gb\n"
                         "  fabric: {kind: single-switch}\n  down: [\"node1/gpu3\"]\n"}}),
                 "16 ranks, but there are 15 devices for them (node1/gpu3 is down)",
                 "data_parallel: 2 would use 8 of them");
}

TEST(BadInput, UnknownSchedule) {
  expect_refused(strategy("  tensor_parallel: 4\n  pipeline_parallel: 4\n  global_batch: 16\n"
                          "  schedule: 1f1f\n"),
                 "no schedule '1f1f'", "did you mean '1f1b'?");
}

TEST(BadInput, NoModel) {
  expect_refused("cluster: two-dgx-a100\nstrategy: {global_batch: 1, data_parallel: 16}\n",
                 "no model", "--model");
}

TEST(BadInput, EmptyFile) {
  expect_refused("", "study.yaml");
}

TEST(BadInput, ADirectory) {
  const TemporaryFolder folder;
  const Outcome outcome = foreshard("simulate '" + folder.path().string() + "'");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("directory"));
}

TEST(BadInput, NoSuchFile) {
  const Outcome outcome = foreshard("simulate /nonexistent/study.yaml");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/study.yaml"));
}

TEST(BadInput, BinaryGarbage) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>((i * 197 + i / 7) % 256);
  expect_refused(bytes, "study.yaml");
}

TEST(BadInput, TenThousandDeepNesting) {
  expect_refused("cluster: " + std::string(10'000, '[') + std::string(10'000, ']') + "\n", "deep");
}

// Nine levels of ten aliases each stand for 10^9 nodes.
TEST(BadInput, AliasBomb) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string previous = "*a" + std::to_string(i - 1);
    std::string line = "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + previous;
    for (int j = 1; j < 10; ++j) line += ", " + previous;
    text += line + "]\n";
  }
  expect_refused(text, "alias");
}

TEST(BadInput, SeveralFaultsAreToldAtOnce) {
  const TemporaryFolder folder;
  const std::string text = strategy("  tensor_paralel: 2\n  global_bach: 16\n  micro_batch: 0\n");
  const std::string file = folder.write("study.yaml", text).string();
  const Outcome outcome = foreshard("simulate '" + file + "'");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("tensor_paralel"));
  EXPECT_THAT(outcome.err, HasSubstr("global_bach"));
  EXPECT_THAT(outcome.err, HasSubstr("micro_batch"));
}

TEST(BadInput, AResultThatCannotBeWritten) {
  const Outcome outcome = foreshard(
      "simulate configs/studies/gpt-1.7b-a100-8.yaml --format json -o /nonexistent/result.json");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/result.json"));
}

}  // namespace
}  // namespace foreshard::cli
