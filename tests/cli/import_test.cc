// Configurations of other frameworks: as a strategy, as a whole study, in place of --strategy, and
// written from one of ours.
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/test.h"

namespace foreshard::cli::import_test {

const std::string kData = "tests/strategies/launch/data/";
const std::string kSmallModel =
    "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 512 "
    "--max-position-embeddings 512 --vocab-size 1000 ";

double step_of(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  if (outcome.code != 0) return 0;
  return nlohmann::json::parse(outcome.out)["step"]["time_s"].get<double>();
}

TEST(Import, WritesAStrategyThatCheckAccepts) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "strategy.yaml").string();
  const Outcome outcome =
      foreshard("import " + kData + "mixtral.args --devices 128 -o '" + file + "'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("(megatron) gives: tensor_parallel 2, pipeline_parallel 8"));
  EXPECT_THAT(outcome.err, HasSubstr("without meaning for a step: --moe-grouped-gemm"));
  EXPECT_THAT(text_of(file), HasSubstr("expert_parallel: 8  # --expert-model-parallel-size 8\n"));
  const Outcome check = foreshard("check '" + file + "' --kind strategy");
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_THAT(check.out, HasSubstr("expert_parallel: 8\n"));
}

TEST(Import, WritesAModelAndAStudy) {
  const TemporaryFolder folder;
  const std::string model = (folder.path() / "model.yaml").string();
  const std::string study = (folder.path() / "study.yaml").string();
  EXPECT_EQ(
      foreshard("import " + kData + "mixtral.args --devices 128 --part model -o '" + model + "'")
          .code,
      0);
  EXPECT_EQ(foreshard("check '" + model + "' --kind model").code, 0);
  const Outcome outcome =
      foreshard("import " + kData +
                "llama3-8b.toml --cluster '{extends: two-dgx-h100, nodes: 8}' --part study -o '" +
                study + "'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(text_of(study), HasSubstr("model:\n  extends: llama3-8b"));
  const Outcome check = foreshard("check '" + study + "'");
  EXPECT_EQ(check.code, 0) << check.err;
}

// The same run as options and as keys of ours.
TEST(Import, StandsInForTheStrategy) {
  const std::string cluster = "simulate --cluster two-dgx-a100 --format json ";
  const std::string options =
      "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 "
      "--micro-batch-size 1 --global-batch-size 32 --bf16 ";
  const Outcome imported =
      foreshard(cluster + "--megatron '" + kSmallModel + options + "--overlap-grad-reduce'");
  const double step = step_of(imported);
  EXPECT_THAT(imported.err, HasSubstr("--megatron (megatron) gives: tensor_parallel 2"));
  const Outcome ours = foreshard(
      cluster +
      "--model '{name: x, layers: 8, hidden: 1024, heads: 16, vocabulary: 1000, sequence: 512}' "
      "--strategy '{tensor_parallel: 2, pipeline_parallel: 2, data_parallel: 4, global_batch: 32, "
      "framework: {extends: megatron-lm, fused_cross_entropy: false, "
      "overlap_parameter_gather: false}}'");
  EXPECT_DOUBLE_EQ(step, step_of(ours));
  // What follows changes a value of the file; another model only takes its length of sequences.
  EXPECT_NE(step, step_of(foreshard(cluster + "--megatron '" + kSmallModel + options +
                                    "' --set strategy.recompute=full")));
  const Outcome other =
      foreshard(cluster + "--model gpt-1.7b --megatron '" + kSmallModel + options + "'");
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_THAT(nlohmann::json::parse(other.out)["study"]["model"].get<std::string>(),
              HasSubstr("1.7"));
}

TEST(Import, TakesFilesInPlaceOfTheStrategyOfAStudy) {
  const Outcome outcome = foreshard("simulate gpt-1.7b-a100-8 --format json --import " + kData +
                                    "accelerate-megatron.yaml --set strategy.micro_batch=1");
  EXPECT_EQ(outcome.code, 2);  // 16 processes on 8 devices
  EXPECT_THAT(outcome.err, HasSubstr("16 ranks"));
}

// What is exported is imported as the same strategy.
TEST(Export, WritesTheStrategyForOthers) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "run.args").string();
  const Outcome outcome = foreshard("export gpt3-175b-a100-1024 --as megatron -o '" + file + "'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(text_of(file), HasSubstr("--tensor-model-parallel-size 8 \\\n"));
  EXPECT_THAT(text_of(file), HasSubstr("--num-layers 96"));
  const Outcome back = foreshard("import '" + file + "' --cluster gpt3-a100-1024");
  EXPECT_EQ(back.code, 0) << back.err;
  EXPECT_THAT(back.out, HasSubstr("data_parallel: "));
  const Outcome toml = foreshard("export llama3-8b-h100-64-fsdp --as torchtitan");
  EXPECT_EQ(toml.code, 0) << toml.err;
  EXPECT_THAT(toml.out, HasSubstr("[parallelism]"));
  EXPECT_THAT(toml.err, HasSubstr("not in the file: the model"));
  const Outcome yaml = foreshard("export llama3-8b-h100-64-fsdp --as accelerate");
  EXPECT_THAT(yaml.out, HasSubstr("# micro_batch: "));
  EXPECT_THAT(yaml.out, HasSubstr("distributed_type: FSDP"));
}

}  // namespace foreshard::cli::import_test
