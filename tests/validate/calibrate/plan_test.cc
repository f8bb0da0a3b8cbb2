#include "validate/calibrate/plan.h"

#include "tests/test.h"

#include "sim/compute/operator_time.h"
#include "strategies/program/ir/json.h"
#include "strategies/program/ir/verify.h"

namespace foreshard::calibrate {
namespace {

using program::AxisGroup;
using program::CollectiveKind;
using program::Program;

// Two stages of two: a product and an all-reduce within a stage, a transfer from the first to the
// second.
Program sample() {
  Program p;
  p.name = "sample";
  p.mesh = {{"tensor", 2}, {"pipeline", 2}};
  p.streams = {{"compute"}};
  const program::Task multiply{.name = "multiply",
                               .body = Gemm{.m = 64, .n = 64, .k = 64, .dtype = DType::kFp32},
                               .stream = program::StreamId{0}};
  const auto task = [](const char* name, CollectiveKind kind, program::Group group) {
    return program::Task{.name = name,
                         .body = program::Communication{.kind = kind,
                                                        .group = std::move(group),
                                                        .bytes = 1_MiB,
                                                        .tag = "t" + std::string(name)},
                         .stream = program::StreamId{0}};
  };
  p.blocks = {{"work", {multiply, task("sum", CollectiveKind::kAllReduce, AxisGroup{{0}, {}})}},
              {"send", {task("x", CollectiveKind::kSend, program::AxisPeer{1, 1})}},
              {"receive", {task("x", CollectiveKind::kReceive, program::AxisPeer{1, 0})}}};
  p.roles = {{.name = "first",
              .ranks = {0, 1},
              .calls = {{.block = program::BlockId{0}}, {.block = program::BlockId{1}}}},
             {.name = "second",
              .ranks = {2, 3},
              .calls = {{.block = program::BlockId{0}}, {.block = program::BlockId{2}}}}};
  return p;
}

TEST(Plan, HasEveryKernelAndCollectiveOnceARound) {
  ASSERT_TRUE(program::verify(sample()).ok());
  const auto plan = value_of(microbenchmarks({sample()}, {.step = 40_ms, .fewest = 1}));
  EXPECT_TRUE(program::verify(plan).ok());
  // Ladder of 1 MiB by 4: 256, 64, 16, 4 KiB. Items: 1 kernel, 5 all-reduces, 2 x 5 transfers, of
  // 1 ms each by the forecast: 40 ms hold two rounds.
  std::map<CollectiveKind, int> kinds;
  int kernels = 0;
  for (const auto& block : plan.blocks) {
    ASSERT_EQ(block.tasks.size(), 1U);
    const auto& body = block.tasks[0].body;
    kernels += std::holds_alternative<Kernel>(body) ? 1 : 0;
    if (const auto* what = std::get_if<program::Communication>(&body)) ++kinds[what->kind];
  }
  EXPECT_EQ(kernels, 1);
  EXPECT_EQ(kinds[CollectiveKind::kAllReduce], 5);
  EXPECT_EQ(kinds[CollectiveKind::kSend], 10);
  EXPECT_EQ(kinds[CollectiveKind::kReceive], 10);
  std::map<std::size_t, int> often;
  for (const auto& call : plan.roles[0].calls) often[call.block.index()] += call.repeat;
  for (const auto& [block, n] : often) EXPECT_EQ(n, 2);
  // The rounds have orders of their own.
  const auto& calls = plan.roles[0].calls;
  const std::size_t half = calls.size() / 2;
  bool same = true;
  for (std::size_t i = 0; i < half; ++i) same = same && calls[i].block == calls[half + i].block;
  EXPECT_FALSE(same);
}

// A replay runs a pass of several launches as one kernel: so it is measured.
TEST(Plan, MeasuresAPassOfSeveralLaunchesAsOne) {
  Program program = sample();
  program.blocks[0].tasks[0].body =
      Kernel{Pass{.kind = PassKind::kQuantize, .rows = 64, .columns = 64, .launches = 4}};
  const auto plan = value_of(microbenchmarks({program}, {.step = 40_ms, .fewest = 1}));
  int passes = 0;
  for (const auto& block : plan.blocks) {
    const auto* kernel = std::get_if<Kernel>(&block.tasks[0].body);
    if (kernel == nullptr) continue;
    ++passes;
    EXPECT_EQ(std::get<Pass>(*kernel).launches, 1);
  }
  EXPECT_EQ(passes, 1);
}

TEST(Plan, AddsNeighboursWhereAKindHasFewSizes) {
  const auto plan = value_of(microbenchmarks({sample()}, {.fewest = 6}));
  std::set<Kernel> kernels;
  for (const auto& block : plan.blocks)
    if (const auto* kernel = std::get_if<Kernel>(&block.tasks[0].body)) kernels.insert(*kernel);
  EXPECT_EQ(kernels.size(), 6U);
  EXPECT_TRUE(kernels.contains(Gemm{.m = 128, .n = 64, .k = 64, .dtype = DType::kFp32}));
  EXPECT_TRUE(kernels.contains(Gemm{.m = 32, .n = 64, .k = 64, .dtype = DType::kFp32}));
}

// Where the device is known, small products tell its numbers apart.
TEST(Plan, AddsProductsThatTellADevicesNumbers) {
  const auto device = value_of(yaml::Loader(shipped_options()).read_ref<DeviceType>("H200-SXM"));
  Program large = sample();
  large.blocks[0].tasks[0].body = Gemm{.m = 8192, .n = 8192, .k = 4096};
  const auto plan =
      value_of(microbenchmarks({large}, {.fewest = 1, .small = 100_us, .device = device}));
  std::set<Kernel> kernels;
  for (const auto& block : plan.blocks)
    if (const auto* kernel = std::get_if<Kernel>(&block.tasks[0].body)) kernels.insert(*kernel);
  EXPECT_TRUE(kernels.erase(Gemm{.m = 8192, .n = 8192, .k = 4096}));
  EXPECT_GE(kernels.size(), 6U);
  EXPECT_LE(kernels.size(), 32U);
  for (const Kernel& kernel : kernels) {
    EXPECT_EQ(std::get<Gemm>(kernel).dtype, DType::kBf16);
    EXPECT_LE(time_of(kernel, device).total(), 100_us) << describe(kernel);
  }
}

TEST(Plan, IsTheSameEachTimeAndReadsBack) {
  const auto plan = value_of(microbenchmarks({sample()}, {}));
  const std::string text = program::to_json(plan);
  EXPECT_EQ(text, program::to_json(*microbenchmarks({sample()}, {})));
  EXPECT_EQ(value_of(program::program_from_json(text)), plan);
}

TEST(Plan, NamesWhatItCannotPlanFor) {
  const auto fault = [](const std::vector<Program>& programs) {
    return message_of(microbenchmarks(programs, {}));
  };
  EXPECT_THAT(fault({}), HasSubstr("no Program"));
  Program wider = sample();
  wider.name = "wider";
  wider.mesh[0].size = 4;
  EXPECT_THAT(fault({sample(), wider}), HasSubstr("'sample' has 4 ranks and 'wider' 8"));
  Program moved = sample();
  moved.device_of_rank = {3, 2, 1, 0};
  EXPECT_THAT(fault({sample(), moved}), HasSubstr("place their ranks on devices differently"));
}

}  // namespace
}  // namespace foreshard::calibrate
