
#include "tests/base/temporary_folder.h"
#include "tests/test.h"

#include "sim/study/run.h"
#include "sim/study/study.h"

namespace foreshard::study::pool_test {

Result<LoadedStudy> load(const std::string& rest, const std::string& strategy) {
  const TemporaryFolder folder;
  const auto file = folder.write(
      "study.yaml",
      "model: {name: small, layers: 4, hidden: 512, heads: 8, vocabulary: 1000, sequence: 256}\n"
      "strategy: " +
          strategy + "\n" + rest + "\n");
  return load_study({.study = file}, shipped_options());
}

constexpr const char* kTwoOfTwo =
    "cluster: {name: two, nodes: 2, node: {device: A100-SXM-80GB, gpus: 2, nvlink: {bandwidth: 300 "
    "GB/s}, nics: {count: 1, bandwidth: 100 Gbit/s}}, fabric: {kind: single-switch}";

std::string cluster(const std::string& rest = "") {
  return kTwoOfTwo + rest + "}";
}

std::vector<std::int32_t> devices(const std::string& rest) {
  return value_of(load(rest, "{global_batch: 4}")).pool.devices;
}

std::string refusal(const std::string& rest, const std::string& strategy = "{global_batch: 4}") {
  return message_of(load(rest, strategy));
}

TEST(Pool, IsEveryDeviceThatWorks) {
  EXPECT_THAT(devices(cluster()), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(devices(cluster(", down: [node0/gpu1]")), ElementsAre(0, 2, 3));
}

TEST(Pool, IsWhatUseNamesInThatOrder) {
  EXPECT_THAT(devices(cluster() + "\nuse: [node1, node0/gpu1]"), ElementsAre(2, 3, 1));
  EXPECT_THAT(devices(cluster() + "\nuse: ['*/gpu1', 'node*']"), ElementsAre(1, 3, 0, 2));
  EXPECT_THAT(devices(cluster(", down: [node1/gpu0]") + "\nuse: [node1]"), ElementsAre(3));
}

TEST(Pool, RefusesNamesOfNothing) {
  EXPECT_THAT(refusal(cluster() + "\nuse: [node2]"), HasSubstr("'node2' matches no device"));
  EXPECT_THAT(refusal(cluster(", down: [node1/gpu0]") + "\nuse: [node1/gpu0]"),
              HasSubstr("'node1/gpu0' is down in cluster 'two'"));
}

TEST(Pool, SaysWhyThereAreTooFew) {
  constexpr const char* kFour = "{data_parallel: 4, global_batch: 4}";
  EXPECT_THAT(refusal(cluster(", down: [node0/gpu1]"), kFour),
              HasSubstr("= 4 ranks, but there are 3 devices for them (node0/gpu1 is down)"));
  EXPECT_THAT(refusal(cluster(", down: ['node0/*']"), kFour),
              HasSubstr("2 devices for them (node0/gpu0 and node0/gpu1 are down)"));
  EXPECT_THAT(refusal(cluster() + "\nuse: [node0]", kFour),
              HasSubstr("2 devices for them (use names 2 of the cluster's 4 devices)"));
}

// Two ranks on the second of two like nodes take what they take on the first, whether the study
// says so or the first node is down; the prediction tells who does nothing.
TEST(RunStudy, LeavesDevicesIdle) {
  constexpr const char* kTwo = "{data_parallel: 2, global_batch: 4}";
  const auto run = [&](const std::string& rest) {
    return value_of(run_study(value_of(load(rest, kTwo)), {}));
  };
  const StudyRun first = run(cluster());
  EXPECT_THAT(first.program.device_of_rank, IsEmpty());
  EXPECT_EQ(first.prediction.devices, 2);
  EXPECT_EQ(first.prediction.idle, 2);
  EXPECT_EQ(first.prediction.down, 0);
  EXPECT_THAT(
      first.prediction.warnings,
      Contains(testing::Field(&sim::Warning::message,
                              "2 of 4 devices that work stay idle: the strategy has 2 ranks; "
                              "data_parallel: 4 would use 4")));

  const StudyRun named = run(cluster() + "\nuse: [node1]");
  EXPECT_THAT(named.program.device_of_rank, ElementsAre(2, 3));
  EXPECT_EQ(named.prediction.idle, 2);
  const StudyRun down = run(cluster(", down: ['node0/gpu*']") + "");
  EXPECT_EQ(down.prediction.idle, 0);
  EXPECT_EQ(down.prediction.down, 2);
  for (const StudyRun* other : {&named, &down}) {
    EXPECT_EQ(other->prediction.step, first.prediction.step);
    EXPECT_EQ(other->prediction.mfu, first.prediction.mfu);
    EXPECT_EQ(other->prediction.classes.front().device, DeviceId{2});
  }
}

}  // namespace foreshard::study::pool_test
