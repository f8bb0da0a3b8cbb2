#include "validate/replay/watchdog.h"

#include "tests/test.h"

namespace foreshard::replay {
namespace {

using Places = std::map<std::int32_t, Place>;

Place in(std::int64_t communicator, std::vector<std::int32_t> members, std::int64_t ordinal = 0) {
  return {.stage = "repeat 1",
          .communicator = communicator,
          .ordinal = ordinal,
          .tag = "x",
          .members = std::move(members),
          .what = "operation " + std::to_string(communicator)};
}
Place computing() {
  return {.stage = "repeat 1", .what = "kernel gemm"};
}

TEST(Judgement, FollowsWhoWaitsForWhom) {
  // 0 waits for 1 in operation 7, 1 for 2 in operation 8, 2 computes.
  const Places places{{0, in(7, {0, 1})}, {1, in(8, {1, 2})}, {2, computing()}};
  EXPECT_EQ(judgement(0, 3, places),
            "rank 0 waits in operation 7 for rank 1, which waits in operation 8 for rank 2, which "
            "is in kernel gemm; rank 2 is the culprit");
  EXPECT_EQ(judgement(1, 3, places),
            "rank 1 waits in operation 8 for rank 2, which is in kernel gemm; rank 2 is the "
            "culprit");
  EXPECT_EQ(judgement(2, 3, places),
            "rank 2 is in kernel gemm, while rank 0 waits in operation 7 for rank 1, which waits "
            "in operation 8 for rank 2, which is in kernel gemm; rank 2 is the culprit");
}

TEST(Judgement, AccusesWhoDoesNotAnswerFirst) {
  const Places places{{0, in(7, {0, 1, 2, 3})}, {1, computing()}, {2, in(7, {0, 1, 2, 3})}};
  EXPECT_EQ(judgement(0, 4, places),
            "rank 0 waits in operation 7 for rank 3 (and 1 more), which does not answer; rank 3 is "
            "the culprit");
}

TEST(Judgement, TellsOperationsOfOneCommunicatorApart) {
  const Places places{{0, in(7, {0, 1}, 2)}, {1, in(7, {0, 1}, 1)}};
  EXPECT_EQ(judgement(0, 2, places),
            "rank 0 waits in operation 7 for rank 1, which waits in operation 7 for rank 0: ranks "
            "on this way wait for each other");
}

TEST(Judgement, BlamesTheNetworkWhereAllAreIn) {
  const Places places{{0, in(7, {0, 1})}, {1, in(7, {0, 1})}};
  EXPECT_EQ(judgement(1, 2, places),
            "rank 1 waits in operation 7, as all members of it do: the network or the library "
            "hangs");
}

TEST(Judgement, ListsRanksWhereNobodyCommunicates) {
  const Places places{{0, {.stage = "preparing"}}, {1, computing()}};
  EXPECT_EQ(judgement(0, 3, places),
            "nobody waits in a communication: rank 0 is preparing, rank 1 is in kernel gemm, rank "
            "2 does not answer; rank 2 is the culprit");
}

TEST(Judgement, NamesWhoIsLate) {
  const Places places{{0, {.stage = "preparing"}},
                      {1, {.stage = "preparing", .alone = "loads NCCL"}}};
  EXPECT_EQ(judgement(0, 2, places),
            "nobody waits in a communication: rank 0 is preparing, rank 1 is preparing: it loads "
            "NCCL; the others wait for rank 1");
}

TEST(Place, SurvivesBeingReadBack) {
  const Place place = in(7, {0, 3, 12}, 5);
  EXPECT_EQ(place_from_text(to_text(place)), place);
  EXPECT_EQ(place_from_text(to_text(computing())), computing());
  const Place late{.stage = "preparing", .alone = "loads NCCL"};
  EXPECT_EQ(place_from_text(to_text(late)), late);
  for (const char* text : {"", "{}", "[1]", "{\"stage\":1}", "nonsense"})
    EXPECT_EQ(place_from_text(text), std::nullopt) << text;
}

}  // namespace
}  // namespace foreshard::replay
