#include "strategies/program/lower/legacy_behavior.h"

#include "tests/test.h"

namespace foreshard::lower::legacy_behavior_test {

using program::Block;
using program::Task;

Task product(const Gemm& gemm, std::vector<std::int32_t> after = {}) {
  return {.name = "product", .body = Kernel(gemm), .after = std::move(after)};
}

// Rows of 150 fp16 elements are 300 bytes; 152 elements are 19 times 16 bytes.
TEST(AvoidUnalignedMatrixUnits, TakesBatchedProductsOfUnalignedRows) {
  const auto stays = [](const Gemm& gemm) {
    Block block{.tasks = {product(gemm)}};
    avoid_unaligned_matrix_units(block);
    return std::get<Gemm>(std::get<Kernel>(block.tasks[0].body)).matrix_units;
  };
  EXPECT_FALSE(stays({.batch = 12, .m = 2048, .n = 2048, .k = 150, .dtype = DType::kFp16}));
  EXPECT_FALSE(stays({.batch = 12, .m = 2048, .n = 150, .k = 2048, .dtype = DType::kFp16}));
  EXPECT_TRUE(stays({.batch = 12, .m = 2048, .n = 2048, .k = 152, .dtype = DType::kFp16}));
  EXPECT_TRUE(stays({.batch = 12, .m = 2048, .n = 2048, .k = 150, .dtype = DType::kFp32}));
  EXPECT_TRUE(stays({.batch = 1, .m = 2048, .n = 2048, .k = 150, .dtype = DType::kFp16}));
}

// 8 experts of 9 us each, behind their product; what waited for the last product still does. A pass
// of 4 kernels keeps the host for 3 us each, one of a single kernel not.
TEST(LaunchExperts, KeepsTheHostForEachOfThem) {
  Block block{.tasks = {product({.batch = 8, .apart = true}), product({.batch = 8}, {0}),
                        product({.batch = 2, .apart = true}, {0, 1}), product({}, {2})}};
  for (const std::int64_t launches : {4, 1})
    block.tasks.push_back(Task{.name = "quantize", .body = Kernel{Pass{.launches = launches}}});
  launch_experts(block, 9_us, 3_us);
  ASSERT_EQ(block.tasks.size(), 9u);
  EXPECT_EQ(std::get<program::HostWork>(block.tasks[7].body).time, 12_us);
  EXPECT_EQ(std::get<program::HostWork>(block.tasks[1].body).time, 72_us);
  EXPECT_EQ(std::get<program::HostWork>(block.tasks[4].body).time, 18_us);
  EXPECT_THAT(block.tasks[2].after, ElementsAre(0));
  EXPECT_THAT(block.tasks[3].after, ElementsAre(0, 2));
  EXPECT_THAT(block.tasks[5].after, ElementsAre(3));
}

// Waits come behind both kernels and the all-reduce, none behind the send; what waited for the
// second product, task 2, still does: in the block, and in a later call.
TEST(MakeLaunchesBlocking, WaitsForEachKernelAndCollective) {
  const auto communicate = [](program::CollectiveKind kind) {
    return Task{.name = "communicate", .body = program::Communication{.kind = kind}};
  };
  program::Program program;
  program.blocks = {
      Block{.tasks = {product({}), communicate(program::CollectiveKind::kAllReduce),
                      product({}, {0, 1}), communicate(program::CollectiveKind::kSend)}},
      Block{.tasks = {product({})}}};
  program.blocks[0].tasks[3].after = {2};
  program.roles = {{.calls = {{.block = program::BlockId{0}},
                              {.block = program::BlockId{1}, .after = {{0, 2}, {0, -1}}}}}};
  make_launches_blocking(program);

  const std::vector<Task>& tasks = program.blocks[0].tasks;
  ASSERT_EQ(tasks.size(), 7u);
  for (const std::size_t wait : {1u, 3u, 5u}) {
    EXPECT_TRUE(std::holds_alternative<program::Sync>(tasks[wait].body)) << wait;
    EXPECT_THAT(tasks[wait].after, ElementsAre(static_cast<std::int32_t>(wait) - 1));
  }
  EXPECT_THAT(tasks[4].after, ElementsAre(0, 2));
  EXPECT_THAT(tasks[6].after, ElementsAre(4));
  EXPECT_THAT(program.roles[0].calls[1].after,
              ElementsAre(program::CallDependency{0, 4}, program::CallDependency{0, -1}));
}

}  // namespace foreshard::lower::legacy_behavior_test
