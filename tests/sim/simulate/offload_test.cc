// Copies between devices and the memory of their hosts, with the links that they share, by hand: 8
// GPUs in a node, two behind each PCIe switch, two switches behind each socket. A switch carries 50
// GB/s up and 50 GB/s down, 20 us per MB, after 2 x 1 us; memory carries 80 GB/s in all, 12.5 us
// per MB.

#include "tests/sim/compute/toy_device.h"
#include "tests/sim/simulate/small.h"
#include "tests/strategies/graph/written_model.h"
#include "tests/test.h"
#include "tests/topology/small_clusters.h"

#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::sim::offload_test {

using program::CollectiveKind;

ClusterView host(double memory = 80, const DeviceType& type = star(1).device_types().front()) {
  NodeConfig node = small_node(8);
  node.device.value = type;
  node.pcie.efficiency.value = 50_GB_s / pcie_bandwidth(5);
  node.pcie.latency.value = 1_us;
  node.nics->count = 4;
  node.cpu.memory_bandwidth = {memory * 1_GB_s, "", yaml::Evidence::kUser};
  node.cpu.memory_efficiency.value = 1;
  return must_build(small_cluster(1, {}, node));
}

program::Task copy(CollectiveKind kind, Bytes bytes, program::StreamId stream) {
  return {.name = std::string(program::name_of(kind)),
          .body = program::Communication{.kind = kind,
                                         .group = program::AxisGroup{},
                                         .bytes = bytes,
                                         .purpose = program::Purpose::kOffload},
          .stream = stream};
}
program::Task offload(Bytes bytes) {
  return copy(CollectiveKind::kToHost, bytes, kFirst);
}
program::Task fetch(Bytes bytes) {
  return copy(CollectiveKind::kFromHost, bytes, kSecond);
}
program::Task on_cpu(Bytes bytes) {
  return copy(CollectiveKind::kOnHost, bytes, kThird);
}

// Rank r runs entry r; the others compute for an instant.
Seconds step(const ClusterView& cluster, std::vector<std::vector<program::Task>> tasks) {
  tasks.resize(8);
  for (auto& of : tasks) of.push_back(kernel("end", 1));
  const program::Program program = each_rank(tasks);
  Seconds time;
  for (const auto granularity : {Granularity::kFlat, Granularity::kStepwise}) {
    const Prediction prediction = run(cluster, program, {.granularity = granularity});
    if (time > 0_s) expect_time(prediction.step, time);
    time = prediction.step;
    expect_time(prediction.breakdown.total(), prediction.step);
  }
  return time;
}

TEST(Offload, AloneIsLatencyAndBytesOverBandwidth) {
  expect_time(step(host(), {{offload(1_MB)}}), 2_us + 20_us);
  expect_time(step(host(), {{fetch(1_MB)}}), 2_us + 20_us);
}

// Ranks 0 and 1 share a switch: twice as long. Ranks 0 and 2 share a socket's memory: 40 GB/s each.
// Ranks 0 and 4 share nothing.
TEST(Offload, SharesSwitchesAndMemory) {
  expect_time(step(host(), {{offload(1_MB)}, {offload(1_MB)}}), 2_us + 40_us);
  expect_time(step(host(), {{offload(1_MB)}, {}, {offload(1_MB)}}), 2_us + 25_us);
  expect_time(step(host(200), {{offload(1_MB)}, {}, {offload(1_MB)}}), 2_us + 20_us);
  expect_time(step(host(), {{offload(1_MB)}, {}, {}, {}, {offload(1_MB)}}), 2_us + 20_us);
}

// All eight: four a socket, 20 GB/s each.
TEST(Offload, OfAWholeNodeTakesItsMemory) {
  const std::vector<std::vector<program::Task>> all(8, {offload(1_MB)});
  expect_time(step(host(), all), 2_us + 50_us);
  const Prediction prediction = run(host(), every_rank(8, {offload(1_MB), kernel("end", 1)}));
  expect_time(prediction.step, 2_us + 50_us);
  EXPECT_EQ(prediction.classes.size(), 1U);
  EXPECT_EQ(prediction.classes[0].count, 8);
}

// The two directions of a link do not compete; in memory they do.
TEST(Offload, DirectionsShareMemoryAlone) {
  expect_time(step(host(200), {{offload(1_MB), fetch(1_MB)}}), 2_us + 20_us);
  expect_time(step(host(80), {{offload(1_MB), fetch(1_MB)}}), 2_us + 25_us);
}

// What the CPU reads and writes for one rank takes from the copies of another.
TEST(Offload, SharesMemoryWithTheCpu) {
  expect_time(step(host(), {{on_cpu(8_MB)}}), 100_us);
  expect_time(step(host(), {{on_cpu(8_MB)}, {}, {on_cpu(8_MB)}}), 200_us);
  expect_time(step(host(), {{on_cpu(8_MB)}, {}, {}, {}, {on_cpu(8_MB)}}), 100_us);
  // 2 us alone (0.16 MB), then 40 GB/s each for 25 us (1 MB): 6.84 MB are left.
  expect_time(step(host(), {{on_cpu(8_MB)}, {}, {offload(1_MB)}}), 2_us + 25_us + 85.5_us);
}

// It is booked under the host, where nothing hides it, and takes no multiprocessor.
TEST(Offload, RunsBesideKernels) {
  std::vector<std::vector<program::Task>> tasks(8, {kernel("end", 1)});
  tasks[0] = {offload(1_MB), kernel("work", 10 * kMillion)};
  const Prediction prediction = run(host(), each_rank(tasks));
  expect_time(prediction.step, 40_us);
  tasks[0] = {offload(4_MB), kernel("work", 10 * kMillion)};
  const Prediction longer = run(host(), each_rank(tasks));
  expect_time(longer.step, 82_us);
  expect_time(longer.breakdown.host, 42_us);
}

// Of 8 layers 4 are offloaded: when the forward pass ends they are gone, and while the backward
// pass goes on one comes as one goes. Where copies are slow, passes wait for them.
TEST(Offload, TakesAwayFromThePeakWhatIsOffloaded) {
  const Model model = written_model(
      "name: small, layers: 8, hidden: 256, heads: 4, ffn: 1024, vocabulary: 512, sequence: 512, "
      "tied_embeddings: false, dropout: false");
  Strategy strategy;
  strategy.global_batch = 1;
  const auto predicted = [&](std::int64_t layers, const ClusterView& cluster) {
    strategy.offload_activation_layers = layers;
    return run(cluster, value_of(lower::lower(model, strategy, {})));
  };
  const auto blocks = value_of(lower::lower_blocks(model, strategy));
  const Bytes saved = blocks.layers.front().saved;
  const Prediction all = predicted(0, host(80, test::toy_device()));
  const Prediction half = predicted(4, host(80, test::toy_device()));
  EXPECT_NEAR((all.classes[0].memory.peak - half.classes[0].memory.peak) / 1_B, 4 * saved / 1_B, 1);
  // 8 copies in all, 4 each way, of which none begins before the first pass or ends behind the
  // last.
  const Prediction slow = predicted(4, host(0.1, test::toy_device()));
  EXPECT_GT(slow.step, 8 * saved / 0.1_GB_s);
  EXPECT_LT(slow.step, 8 * saved / 0.1_GB_s + 2 * all.step);
  EXPECT_LE(slow.classes[0].memory.peak, all.classes[0].memory.peak);
}

TEST(Offload, IsOfOneRank) {
  program::Program program = every_rank(8, {offload(1_MB)});
  ASSERT_TRUE(program::verify(program).ok());
  auto& body = std::get<program::Communication>(program.blocks[0].tasks[0].body);
  body.group = program::AxisGroup{{0}, {}};
  EXPECT_FALSE(program::verify(program).ok());
  body.kind = CollectiveKind::kAllReduce;
  EXPECT_TRUE(program::verify(program).ok());
  body.group = program::AxisGroup{};
  EXPECT_FALSE(program::verify(program).ok());
}

}  // namespace foreshard::sim::offload_test
