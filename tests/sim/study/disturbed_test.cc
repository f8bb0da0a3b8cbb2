// Disturbances as a study says them: what they do.

#include "tests/base/temporary_folder.h"
#include "tests/test.h"

#include "sim/study/run.h"
#include "sim/study/study.h"

namespace foreshard::study::disturbed_test {

// Four nodes of eight in two leaves under two spines.
constexpr const char* kParts =
    "cluster:\n"
    "  name: small\n"
    "  nodes: 4\n"
    "  node: dgx-a100-80gb\n"
    "  fabric: {kind: fat-tree, levels: 2, nodes_per_pod: 2, latency: 1 us}\n"
    "model: {name: small, layers: 4, hidden: 1024, heads: 16, vocabulary: 1000, sequence: 512}\n"
    "strategy: {tensor_parallel: 4, data_parallel: 8, global_batch: 32}\n";

Result<LoadedStudy> load(const std::string& disturbances, std::vector<yaml::Override> set = {}) {
  const TemporaryFolder folder;
  const auto file = folder.write(
      "mine.yaml",
      std::string(kParts) + (disturbances.empty() ? "" : "disturbances: " + disturbances + "\n"));
  yaml::Options options{.catalogue = {FORESHARD_SOURCE_DIR "/configs"},
                        .overrides = std::move(set)};
  return load_study({.study = file}, std::move(options));
}

sim::Prediction run(const std::string& disturbances, const sim::SimulateOptions& options = {},
                    std::vector<yaml::Override> set = {}) {
  return value_of(run_study(value_of(load(disturbances, std::move(set))), options)).prediction;
}

TEST(DisturbedStudy, NothingIsNothingBitForBit) {
  const auto usual = run("");
  const auto same = run(
      "{stragglers: [{devices: node0/gpu0, speed: 1}], "
      "links: [{links: \"node0/nic0\", profile: [{at: 0 s, factor: 1}, {at: 1 ms, factor: 1}]}]}");
  EXPECT_EQ(same.step, usual.step);
  ASSERT_TRUE(same.disturbances);
  EXPECT_THAT(same.disturbances->hits, IsEmpty());
  EXPECT_FALSE(usual.disturbances);
}

TEST(DisturbedStudy, OneSlowDeviceHoldsUpTheStep) {
  const auto usual = run("");
  const auto slow = run("{stragglers: [{devices: node2/gpu3, speed: 0.5}]}");
  EXPECT_GT(slow.step, usual.step * 1.2);
  ASSERT_EQ(slow.disturbances->hits.size(), 1u);
  EXPECT_EQ(slow.disturbances->hits[0].who, std::vector<std::string>{"node2/gpu3"});
  EXPECT_EQ(slow.disturbances->hits[0].effect, "50 % of the speed");
  EXPECT_LT(slow.classes.size(), 32u);
  const auto again = run("{stragglers: [{devices: node2/gpu3}]}", {},
                         {{"disturbances.stragglers.0.speed", "0.5"}});
  EXPECT_EQ(again.step, slow.step);
}

TEST(DisturbedStudy, EachKindTakesItsToll) {
  const auto usual = run("");
  for (const char* const what : {
           "{stragglers: [{fraction: 0.1, speed: 0.7}]}",
           "{stragglers: [{distribution: {kind: uniform, low: 0.6, high: 0.9}}]}",
           "{stragglers: [{devices: \"node0/*\", speed: 0.3, at: 1 ms, until: 20 ms}]}",
           "{links: [{links: \"node0/nic*\", profile: [{at: 0 s, factor: 0.05}]}]}",
           ("{links: [{links: \"node0/nic*\", "
            "profile: [{at: 0 s, factor: 0.01}, {at: 2 ms, factor: 1}], period: 4 ms}]}"),
           "{failures: [{nic: node1/nic0, at: 0 s, until: 100 ms, then: wait}]}",
           "{background: [{links: \"node0/nic*\", rate: 24 GB/s, kind: constant}]}",
           "{background: [{from: node0/gpu0, to: node3/gpu0, connections: 100}]}",
           "{jitter: {kind: lognormal, median: 1, sigma: 0.1}}",
       }) {
    const auto disturbed = run(what);
    EXPECT_GT(disturbed.step, usual.step) << what;
    EXPECT_FALSE(disturbed.interruption) << what;
    EXPECT_EQ(disturbed.disturbances->hits.size(), 1u) << what;
    EXPECT_EQ(run(what).step, disturbed.step) << what;
  }
}

TEST(DisturbedStudy, AFailureOnTheWayIsReroutedOrEndsTheStep) {
  const auto usual = run("");
  const auto rerouted =
      run("{failures: [{switch: spine0, at: 0 s, then: reroute, detection: 1 ms}]}");
  EXPECT_FALSE(rerouted.interruption);
  EXPECT_GE(rerouted.step, usual.step);
  const auto failed = run("{failures: [{device: node1/gpu2, at: 1 ms, detection: 2 ms}]}");
  ASSERT_TRUE(failed.interruption);
  EXPECT_NEAR(failed.interruption->at / 1_ms, 3, 1e-6);
  EXPECT_FALSE(failed.interruption->failed.empty());
  EXPECT_FALSE(failed.interruption->waiting.empty());
}

TEST(DisturbedStudy, ManySeedsGiveADistribution) {
  const std::string many =
      "{seed: 3, runs: 9, stragglers: [{distribution: {kind: normal, mean: 1, deviation: 0.05}}]}";
  const auto prediction = run(many);
  auto steps = prediction.disturbances->steps;
  ASSERT_EQ(steps.size(), 9u);
  EXPECT_EQ(prediction.disturbances->interrupted, 0);
  std::ranges::sort(steps);
  EXPECT_LT(steps.front(), steps.back());
  EXPECT_EQ(prediction.step, steps[4]);  // the one shown is the median
  EXPECT_GE(prediction.disturbances->seed, 3u);
  EXPECT_EQ(run(many).disturbances->steps, prediction.disturbances->steps);
  // Nothing random: one run stands for all.
  EXPECT_EQ(
      run("{runs: 9, stragglers: [{devices: node0/gpu0, speed: 0.9}]}").disturbances->steps.size(),
      1u);
}

}  // namespace foreshard::study::disturbed_test
