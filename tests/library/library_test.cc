// The library answers as the command does: its JSON is the same, and its plain values are that
// JSON's.
#include <cmath>
#include <foreshard/foreshard.h>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace library_test {

using foreshard::Failure;
using foreshard::Study;
using nlohmann::json;
using testing::HasSubstr;

json output_of(const std::string& arguments) {
  const auto outcome = foreshard::cli::foreshard(arguments + " --format json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return json::parse(outcome.out);
}

template <class Call>
Failure failure_of(const Call& call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure;
  }
  return {Failure::Kind::kIo, "there was an answer"};
}

class Shipped : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Studies, Shipped,
                         testing::Values("gpt-1.7b-a100-8", "llama3-8b-h100-64-fsdp",
                                         "gpt-39.1b-a100-64-disturbed", "moe-layer-h100-8"));

TEST_P(Shipped, PredictsAsTheCommandDoes) {
  const foreshard::Prediction prediction = foreshard::predict({.file = GetParam()});
  const json told = json::parse(prediction.json);
  EXPECT_EQ(told, output_of(std::string("simulate ") + GetParam()));

  EXPECT_EQ(prediction.model, told["study"]["model"]);
  EXPECT_EQ(prediction.cluster, told["study"]["cluster"]);
  EXPECT_EQ(prediction.strategy, told["study"]["strategy"]);
  EXPECT_EQ(prediction.devices, told["study"]["devices"]);
  EXPECT_EQ(prediction.feasible, told["feasible"]);
  EXPECT_EQ(prediction.step_seconds, told["step"]["time_s"]);
  EXPECT_EQ(prediction.step_seconds_low, told["step"]["low_s"]);
  EXPECT_EQ(prediction.step_seconds_high, told["step"]["high_s"]);
  EXPECT_EQ(prediction.samples_per_second, told["throughput"]["samples_per_s"]);
  const json& tokens = told["throughput"]["tokens_per_s"];
  EXPECT_EQ(prediction.tokens_per_second, tokens.is_null() ? 0 : tokens.get<double>());
  EXPECT_EQ(prediction.tflops_per_device, told["throughput"]["model_tflops_per_gpu"]);
  EXPECT_EQ(prediction.mfu, told["throughput"]["mfu"]);
  EXPECT_EQ(prediction.memory.peak_bytes, told["memory"]["peak_bytes"]);
  EXPECT_EQ(prediction.memory.capacity_bytes, told["memory"]["capacity_bytes"]);
  EXPECT_EQ(prediction.memory.reserve_bytes, told["memory"]["reserve_bytes"]);
  const json& usd = told["cost"]["usd_per_step"];
  EXPECT_EQ(prediction.usd_per_step ? json(*prediction.usd_per_step) : json(nullptr), usd);
  EXPECT_EQ(prediction.warnings.size(), told["warnings"].size());

  const foreshard::Breakdown& part = prediction.breakdown;
  const json& parts = told["breakdown_s"];
  EXPECT_EQ(part.compute, parts["compute"]);
  EXPECT_EQ(part.optimizer, parts["optimizer"]);
  EXPECT_EQ(part.tensor_communication, parts["tp_comm"]);
  EXPECT_EQ(part.context_communication, parts["cp_comm"]);
  EXPECT_EQ(part.expert_communication, parts["ep_comm"]);
  EXPECT_EQ(part.pipeline_communication, parts["pp_comm"]);
  EXPECT_EQ(part.data_communication, parts["dp_comm"]);
  EXPECT_EQ(part.host, parts["host"]);
  EXPECT_EQ(part.pipeline_bubble, parts["pipeline_bubble"]);
  EXPECT_NEAR(part.compute + part.optimizer + part.tensor_communication +
                  part.context_communication + part.expert_communication +
                  part.pipeline_communication + part.data_communication + part.host +
                  part.pipeline_bubble,
              prediction.step_seconds, 1e-9 * prediction.step_seconds);
}

TEST(Library, PredictsAStudyThatIsBuiltInCode) {
  Study study{.cluster = "two-dgx-a100",
              .model = "gpt-1.7b",
              .strategy = "{tensor_parallel: 2, data_parallel: 8, global_batch: 64}"};
  study.set("strategy.zero_stage", 1)
      .set("cluster.name", "mine")
      .set("strategy.sequence_parallel", true);
  const foreshard::TemporaryFolder folder;
  const std::string trace = (folder.path() / "trace.json").string();
  const auto prediction = foreshard::predict(study, {.trace = trace});
  EXPECT_EQ(json::parse(prediction.json),
            output_of("simulate --cluster two-dgx-a100 --model gpt-1.7b --strategy "
                      "'{tensor_parallel: 2, data_parallel: 8, global_batch: 64}' "
                      "--set strategy.zero_stage=1 --set cluster.name=mine "
                      "--set strategy.sequence_parallel=true"));
  EXPECT_THAT(prediction.cluster, HasSubstr("mine"));
  EXPECT_TRUE(json::parse(foreshard::cli::text_of(trace)).contains("traceEvents"));
}

TEST(Library, TheEnginesAgree) {
  const Study study{.file = "gpt-1.7b-a100-8"};
  const auto fluid = foreshard::predict(study);
  const auto simgrid = foreshard::predict(study, {.engine = foreshard::Engine::kSimgrid});
  EXPECT_NEAR(simgrid.step_seconds / fluid.step_seconds, 1, 0.05);
  EXPECT_EQ(json::parse(simgrid.json)["engine"]["name"], "simgrid");
}

TEST(Library, AnswersSeveralThreadsAtOnce) {
  const auto ask = [] { return foreshard::predict({.file = "gpt-1.7b-a100-8"}).json; };
  std::vector<std::future<std::string>> answers;
  answers.reserve(4);
  for (int i = 0; i < 4; ++i) answers.push_back(std::async(std::launch::async, ask));
  const std::string alone = ask();
  for (auto& answer : answers) EXPECT_EQ(answer.get(), alone);
}

TEST(Library, WhatDoesNotFitIsAnAnswer) {
  Study study{.file = "gpt-1.7b-a100-8"};
  study.set("strategy", "{data_parallel: 8, micro_batch: 16, global_batch: 128}");
  const auto prediction = foreshard::predict(study);
  EXPECT_FALSE(prediction.feasible);
  EXPECT_GT(prediction.memory.peak_bytes,
            prediction.memory.capacity_bytes - prediction.memory.reserve_bytes);
  EXPECT_FALSE(json::parse(prediction.json)["alternatives"].empty());
}

TEST(Library, FaultsAreFailuresThatSayWhereAndWhat) {
  Study study{.file = "gpt-1.7b-a100-8"};
  study.set("strategy.tensor_paralel", 4);
  const Failure key = failure_of([&] { foreshard::predict(study); });
  EXPECT_EQ(key.kind(), Failure::Kind::kInvalidInput);
  EXPECT_THAT(key.what(), HasSubstr("did you mean 'tensor_parallel'?"));

  study.settings.back() = {"strategy.tensor_parallel", "3"};
  const Failure size = failure_of([&] { foreshard::predict(study); });
  EXPECT_EQ(size.kind(), Failure::Kind::kInvalidInput);
  EXPECT_THAT(size.what(), HasSubstr("tensor_parallel"));

  const Failure file = failure_of([] { foreshard::predict({.file = "/nowhere/study.yaml"}); });
  EXPECT_EQ(file.kind(), Failure::Kind::kIo);
  const Failure folder =
      failure_of([] { foreshard::predict({.file = "gpt-1.7b-a100-8", .catalogue = "/nowhere"}); });
  EXPECT_EQ(folder.kind(), Failure::Kind::kIo);
  EXPECT_THAT(folder.what(), HasSubstr("catalogue: there is no folder '/nowhere'"));
  EXPECT_THAT(failure_of([] { foreshard::predict({}); }).what(), HasSubstr("cluster"));
  EXPECT_THAT(
      failure_of([] { foreshard::search({.file = "gpt-1.7b-a100-8"}, {.level = 4}); }).what(),
      HasSubstr("level"));
}

TEST(Library, SearchesAsTheCommandDoesAndPredictsWhatItFinds) {
  const Study study{.cluster = "two-dgx-a100",
                    .model = "gpt-1.7b",
                    .strategy = "{global_batch: 64, layers_per_stage: [24]}"};
  const auto found = foreshard::search(
      study, {.space = "{zero_stage: [1]}", .level = 1, .top = 3, .simulate = 4, .certify = 0});
  const foreshard::TemporaryFolder folder;
  const std::string space = folder.write("space.yaml", "zero_stage: [1]\n").string();
  const json told = json::parse(found.json);
  EXPECT_EQ(told, output_of("search --cluster two-dgx-a100 --model gpt-1.7b --strategy "
                            "'{global_batch: 64, layers_per_stage: [24]}' --level 1 --top 3 "
                            "--simulate 4 --certify 0 --space '" +
                            space + "'"));
  ASSERT_EQ(found.best.size(), 3U);
  EXPECT_EQ(found.considered, told["considered"]);
  EXPECT_EQ(found.certified, told["certified"]);
  EXPECT_EQ(found.gap, told["gap"]);
  for (std::size_t i = 0; i < found.best.size(); ++i) {
    const foreshard::Candidate& one = found.best[i];
    EXPECT_EQ(one.step_seconds, told["best"][i]["time_s"]);
    EXPECT_EQ(one.peak_bytes, told["best"][i]["peak_bytes"]);
    EXPECT_EQ(one.mfu, told["best"][i]["mfu"]);
    Study same = study;
    same.settings.insert(same.settings.end(), one.settings.begin(), one.settings.end());
    const auto prediction = foreshard::predict(same);
    EXPECT_DOUBLE_EQ(prediction.step_seconds, one.step_seconds) << one.strategy;
    EXPECT_EQ(prediction.memory.peak_bytes, one.peak_bytes) << one.strategy;
  }
}

TEST(Library, ReshardsAsTheCommandDoes) {
  const auto plan = foreshard::reshard({.tensor = "bf16[8192,53248]",
                                        .from = "x=16 [x, -]",
                                        .to = "x=16 [-, x]",
                                        .cluster = "two-dgx-h100"});
  const json told = json::parse(plan.json);
  EXPECT_EQ(told, output_of("reshard --tensor 'bf16[8192,53248]' --from 'x=16 [x, -]' "
                            "--to 'x=16 [-, x]' --cluster two-dgx-h100"));
  EXPECT_EQ(plan.name, told["plan"]["name"]);
  EXPECT_EQ(plan.seconds, told["plan"]["time_s"]);
  EXPECT_EQ(plan.baseline_seconds.value_or(0), told["baseline"]["time_s"]);
  EXPECT_EQ(plan.lower_bound_seconds, told["lower_bound"]["time_s"]);
  ASSERT_EQ(plan.steps.size(), told["plan"]["steps"].size());
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    EXPECT_EQ(plan.steps[i].primitive, told["plan"]["steps"][i]["primitive"]);
    EXPECT_EQ(json(plan.steps[i].axes), told["plan"]["steps"][i]["axes"]);
    EXPECT_EQ(plan.steps[i].seconds, told["plan"]["steps"][i]["closed_form_s"]);
    EXPECT_EQ(plan.steps[i].bytes, told["plan"]["steps"][i]["exact_total_bytes"]);
  }
  const Failure layout = failure_of([] {
    foreshard::reshard(
        {.tensor = "bf16[8]", .from = "x=16 [y]", .to = "x=2 [x]", .cluster = "two-dgx-h100"});
  });
  EXPECT_EQ(layout.kind(), Failure::Kind::kInvalidInput);
  EXPECT_THAT(layout.what(), testing::StartsWith("from: "));
}

TEST(Library, SaysItsVersion) {
  EXPECT_EQ(foreshard::version(), output_of("version")["version"]);
}

}  // namespace library_test
