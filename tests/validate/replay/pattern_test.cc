#include "validate/replay/pattern.h"

#include "tests/test.h"

#include "strategies/program/ir/program.h"
#include "validate/replay/plan.h"

namespace foreshard::replay {
namespace {

using program::CollectiveKind;

TEST(Pattern, IsSmallAndSpreadEvenly) {
  std::array<int, 5> count{};
  for (std::int32_t rank = 0; rank < 10; ++rank)
    for (std::int64_t ordinal = 0; ordinal < 10; ++ordinal)
      for (std::int64_t element = 0; element < 100; ++element)
        ++count.at(static_cast<std::size_t>(sent(rank, ordinal, element)));
  for (const int n : count) EXPECT_NEAR(n, 2000, 200);
}

// All communication kinds carried out by copying, on 3 ranks with 7 elements.
class Delivery : public testing::TestWithParam<CollectiveKind> {};

std::vector<int> numbers(void (*fill)(const RankPlan&, std::size_t, std::int64_t, std::span<int>),
                         const RankPlan& plan, std::int64_t count) {
  std::vector<int> whole(static_cast<std::size_t>(count));
  fill(plan, 0, 0, whole);
  // In pieces it must be the same.
  std::vector<int> pieces(whole.size());
  for (std::size_t i = 0; i < pieces.size(); i += 2)
    fill(plan, 0, static_cast<std::int64_t>(i),
         std::span(pieces).subspan(i, std::min<std::size_t>(2, pieces.size() - i)));
  EXPECT_EQ(pieces, whole);
  return whole;
}

TEST_P(Delivery, ExpectsWhatCarryingItOutDelivers) {
  const CollectiveKind kind = GetParam();
  program::Communication what{
      .kind = kind, .group = program::AxisGroup{{0}, {}}, .bytes = 28_B, .dtype = DType::kFp32};
  if (kind == CollectiveKind::kBroadcast) what.roots = {1};
  if (kind == CollectiveKind::kExchange)
    what.transfers = {{0, 1, 8_B}, {2, 1, 4_B}, {0, 1, 4_B}, {1, 2, 8_B}, {0, 2, 4_B}};
  program::Program program;
  program.mesh = {{"data", 3}};
  program.streams = {{"compute"}};
  program.blocks = {{"block", {{"x", what, program::StreamId(0), {}}}}};
  program.roles = {{.name = "all", .ranks = {0, 1, 2}, .calls = {{.block = program::BlockId(0)}}}};

  std::vector<RankPlan> plans;
  std::vector<std::vector<int>> in;
  for (std::int32_t rank = 0; rank < 3; ++rank) {
    plans.push_back(value_of(plan_rank(program, rank)));
    in.push_back(numbers(given, plans.back(), elements_of(plans.back(), 0).send));
  }
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const auto count = static_cast<std::size_t>(elements_of(plans[rank], 0).receive);
    std::vector<int> out(count);
    for (std::size_t e = 0; e < count; ++e) {
      switch (kind) {
        case CollectiveKind::kAllReduce:
          out[e] = in[0][e] + in[1][e] + in[2][e];
          break;
        case CollectiveKind::kReduceScatter:  // 7 elements: shards of 3
          out[e] = in[0][3 * rank + e] + in[1][3 * rank + e] + in[2][3 * rank + e];
          break;
        case CollectiveKind::kAllGather:
          out[e] = in[e / 3][e % 3];
          break;
        case CollectiveKind::kAllToAll:
          out[e] = in[e / 3][3 * rank + e % 3];
          break;
        case CollectiveKind::kBroadcast:
          out[e] = in[1][e];
          break;
        case CollectiveKind::kShift:
          out[e] = in[(rank + 2) % 3][e];
          break;
        default: {
          // Send buffers by hand: 0 has (to 1: 2), (to 1: 1), (to 2: 1); 1 has (to 2: 2); 2 has
          // (to 1: 1). Receive buffers: 1 has 2 of 0, 1 of 2, 1 of 0; 2 has 2 of 1, 1 of 0.
          if (rank == 1) out = {in[0][0], in[0][1], in[2][0], in[0][2]};
          if (rank == 2) out = {in[1][0], in[1][1], in[0][3]};
        }
      }
    }
    EXPECT_EQ(numbers(expected, plans[rank], elements_of(plans[rank], 0).receive), out)
        << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Delivery,
                         testing::Values(CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter,
                                         CollectiveKind::kAllGather, CollectiveKind::kAllToAll,
                                         CollectiveKind::kBroadcast, CollectiveKind::kExchange,
                                         CollectiveKind::kShift),
                         [](const auto& of) { return std::string(name_of(of.param)); });

}  // namespace
}  // namespace foreshard::replay
