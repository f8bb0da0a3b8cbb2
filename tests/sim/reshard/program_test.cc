// Plans as Programs: by hand on a star of 100 GB/s and 1 us, where a copy moves 1 TB/s.
#include "strategies/reshard/program.h"

#include "tests/sim/reshard/cases.h"
#include "tests/sim/simulate/small.h"
#include "tests/test.h"

#include "sim/simulate/cost.h"
#include "strategies/program/ir/verify.h"
#include "strategies/reshard/choose.h"
#include "strategies/reshard/price.h"

namespace foreshard::reshard {
namespace {

using program::Communication;

program::Program written(const Plan& plan, const TensorSpec& tensor, const ClusterView& cluster) {
  const auto program = value_of(program_of(plan, tensor, {.cluster = &cluster}));
  EXPECT_EQ(message_of(program::verify(program)), "accepted");
  return program;
}

const Communication& communication(const program::Program& program, const std::string& block) {
  for (const program::Block& one : program.blocks)
    if (one.name == block) return std::get<Communication>(one.tasks.front().body);
  ADD_FAILURE() << "no block " << block;
  static const Communication none;
  return none;
}

// fp32[4000, 4000] over 4 ranks, rows to columns. A rank holds 16 MB and sends three quarters of
// it: 120 us. Columns of its rows are not contiguous: packing reads and writes 16 MB, 32 us. What
// it receives are rows of its columns, one below the other: no unpacking.
TEST(ReshardProgram, PacksThenExchanges) {
  const auto cluster = sim::star(4);
  const TensorSpec tensor{.dtype = DType::kFp32, .shape = {4000, 4000}};
  const Plan plan{.name = "rows to columns",
                  .steps = {{.primitive = Primitive::kAllToAll,
                             .from = on({{"x", 4}}, {{0}, {}}),
                             .to = on({{"x", 4}}, {{}, {0}}),
                             .axes = {0}}}};
  const auto program = written(plan, tensor, cluster);
  ASSERT_EQ(program.roles.size(), 1U);
  const auto& what = communication(program, "1 all_to_all");
  EXPECT_EQ(what.kind, program::CollectiveKind::kAllToAll);
  EXPECT_EQ(what.bytes, 16_MB);
  EXPECT_NEAR(sim::run(cluster, program).step / 1_us, 32 + 1 + 120, 1e-6);

  // The closed form says the same: nothing contends.
  const auto parameters = sim::rings();
  const sim::SimulatedCost cost(cluster, parameters);
  const Placement placement{.cluster = &cluster};
  StepPricer price(tensor, cost, placement);
  EXPECT_NEAR(*price(plan.steps[0]) / 1_us, 32 + 1 + 120, 1e-6);
}

// Ranks 0 and 1 to ranks 2 and 3: two pairs that have nothing to do with each other. fp32[1000000]:
// 2 MB each at 100 GB/s, 20 us.
TEST(ReshardProgram, TransfersByGroupsThatBelongTogether) {
  const auto cluster = sim::star(6);
  const TensorSpec tensor{.dtype = DType::kFp32, .shape = {1'000'000}};
  const Plan plan{.name = "elsewhere",
                  .steps = {{.primitive = Primitive::kTransfer,
                             .from = on({{"x", 2}}, {{0}}, 1),
                             .to = on({{"y", 2}}, {{0}}, 4)}}};
  const auto program = written(plan, tensor, cluster);
  EXPECT_THAT(program.device_of_rank, ElementsAre(1, 2, 4, 5));
  const auto& what = communication(program, "1 transfer");
  EXPECT_EQ(what.kind, program::CollectiveKind::kExchange);
  EXPECT_THAT(std::get<program::RankGroups>(what.group).groups,
              ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
  EXPECT_NEAR(sim::run(cluster, program).step / 1_us, 1 + 20, 1e-6);
}

// Slices that stay where they are take no part: of 8 rows on ranks 0 to 3, 2 each, ranks 0 and 1
// keep theirs as ranks 2 and 3 hand over to 4 and 5.
TEST(ReshardProgram, RanksWithoutAPartCallNothing) {
  const auto cluster = sim::star(6);
  const TensorSpec tensor{.dtype = DType::kFp32, .shape = {8, 100}};
  Layout to = on({{"x", 4}}, {{0}, {}});
  to.mesh.ranks = {0, 1, 4, 5};
  const Plan plan{
      .name = "two move",
      .steps = {{.primitive = Primitive::kTransfer, .from = on({{"x", 4}}, {{0}, {}}), .to = to}}};
  const auto program = written(plan, tensor, cluster);
  ASSERT_EQ(program.roles.size(), 2U);
  EXPECT_THAT(program.roles[0].ranks, ElementsAre(0, 1));
  EXPECT_TRUE(program.roles[0].calls.empty());
  EXPECT_THAT(program.roles[1].ranks, ElementsAre(2, 3, 4, 5));
}

// A broadcast's root is the rank that has the data, not the lowest.
TEST(ReshardProgram, BroadcastsFromWhoHasIt) {
  const auto cluster = sim::star(4);
  const TensorSpec tensor{.dtype = DType::kFp32, .shape = {1'000'000}};
  Layout root = on({{"one", 1}}, {{}}, 2);
  const Plan plan{.name = "spread",
                  .steps = {{.primitive = Primitive::kBroadcast,
                             .from = root,
                             .to = on({{"x", 4}}, {{}}),
                             .axes = {0}}}};
  EXPECT_THAT(communication(written(plan, tensor, cluster), "1 broadcast").roots, ElementsAre(2));
}

TEST(ReshardProgram, SaysWhenNothingRuns) {
  const auto cluster = sim::star(2);
  const TensorSpec tensor{.dtype = DType::kFp32, .shape = {8}};
  EXPECT_THAT(message_of(program_of({.name = "nothing"}, tensor, {.cluster = &cluster})),
              HasSubstr("nothing moves"));
}

}  // namespace
}  // namespace foreshard::reshard
