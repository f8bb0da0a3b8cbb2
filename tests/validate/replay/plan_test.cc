#include "validate/replay/plan.h"

#include "tests/strategies/lower/random_strategy.h"
#include "tests/strategies/program_ir/samples.h"
#include "tests/test.h"

#include "strategies/program/ir/group.h"
#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::replay::plan_test {

using program::AxisGroup;
using program::AxisPeer;
using program::BlockId;
using program::CollectiveKind;
using program::Communication;
using program::Program;
using program::RankGroups;
using program::Task;

Task communicate(const std::string& name, Communication what, int stream = 0) {
  return {name, std::move(what), program::StreamId(stream), {}};
}

Communication all_reduce(program::Group group, std::string tag = {}) {
  return {.group = std::move(group), .bytes = 1_MiB, .tag = std::move(tag)};
}

// Mesh {"tensor", 2} x {"data", 2}: ranks 0 1 | 2 3. All ranks make one call of `tasks`.
Program square(std::vector<Task> tasks) {
  Program program;
  program.name = "square";
  program.mesh = {{"tensor", 2}, {"data", 2}};
  program.streams = {{"compute"}, {"side"}};
  program.blocks = {{"block", std::move(tasks)}};
  program.roles = {{.name = "all", .ranks = {0, 1, 2, 3}, .calls = {{.block = BlockId(0)}}}};
  return program;
}

RankPlan plan_of(const Program& program, std::int32_t rank) {
  EXPECT_EQ(message_of(program::verify(program)), "accepted");
  return value_of(plan_rank(program, rank));
}

// By hand: groups in the order of first use are tensor {0,1} {2,3}, then data {0,2} {1,3}. Rank 3
// is in {2,3} as number 1 and in {1,3} as number 3.
TEST(Plan, NumbersTheCommunicatorsOfMeshAxes) {
  const Program program = square({communicate("t", all_reduce(AxisGroup{{0}, {}})),
                                  communicate("d", all_reduce(AxisGroup{{1}, {}})),
                                  communicate("t", all_reduce(AxisGroup{{0}, {}}))});
  const RankPlan plan = plan_of(program, 3);
  ASSERT_EQ(plan.communicators.size(), 2U);
  EXPECT_EQ(plan.communicators[0].number, 1);
  EXPECT_THAT(plan.communicators[0].members, ElementsAre(2, 3));
  EXPECT_EQ(plan.communicators[0].me, 1);
  EXPECT_EQ(plan.communicators[0].name, "tensor of ranks 2,3 on stream compute");
  EXPECT_EQ(plan.communicators[1].number, 3);
  EXPECT_THAT(plan.communicators[1].members, ElementsAre(1, 3));
  ASSERT_EQ(plan.operations.size(), 3U);
  EXPECT_EQ(plan.operations[0].communicator, 0);
  EXPECT_EQ(plan.operations[0].ordinal, 0);
  EXPECT_EQ(plan.operations[1].communicator, 1);
  EXPECT_EQ(plan.operations[1].ordinal, 0);
  EXPECT_EQ(plan.operations[2].communicator, 0);
  EXPECT_EQ(plan.operations[2].ordinal, 1);  // The second with that tag.
  EXPECT_EQ(plan.operations[2].peer, -1);
  EXPECT_EQ(plan.operations[2].root, -1);
}

TEST(Plan, GivesEachStreamACommunicatorOfItsOwn) {
  const Program program = square({communicate("a", all_reduce(AxisGroup{{0}, {}}), 0),
                                  communicate("b", all_reduce(AxisGroup{{0}, {}}), 1)});
  const RankPlan plan = plan_of(program, 0);
  ASSERT_EQ(plan.communicators.size(), 2U);
  EXPECT_NE(plan.communicators[0].number, plan.communicators[1].number);
  EXPECT_THAT(plan.communicators[0].members, ElementsAre(0, 1));
  EXPECT_THAT(plan.communicators[1].members, ElementsAre(0, 1));
}

TEST(Plan, KnowsGroupsOfTheSameRanksAsOne) {
  const Program program = square({communicate("a", all_reduce(AxisGroup{{0}, {}})),
                                  communicate("b", all_reduce(RankGroups{{{0, 1}, {2, 3}}})),
                                  communicate("c", all_reduce(AxisGroup{{0, 1}, {}})),
                                  communicate("d", all_reduce(RankGroups{{{0, 1, 2, 3}}}))});
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    const RankPlan plan = plan_of(program, rank);
    EXPECT_EQ(plan.communicators.size(), 2U) << rank;
    EXPECT_EQ(plan.operations[0].communicator, plan.operations[1].communicator);
    EXPECT_EQ(plan.operations[2].communicator, plan.operations[3].communicator);
  }
}

// Pipeline of two stages (rank 0 before rank 1): activations go up, gradients come down, each on a
// communicator of its own, because the two must not wait for each other.
TEST(Plan, GivesEachDirectionOfTransfersACommunicator) {
  Program program;
  program.name = "pipe";
  program.mesh = {{"pipeline", 2}};
  program.streams = {{"compute"}};
  const auto transfer = [](CollectiveKind kind, std::int64_t peer, const std::string& tag) {
    return communicate(tag, {.kind = kind, .group = AxisPeer{0, peer}, .bytes = 1_MiB, .tag = tag});
  };
  program.blocks = {
      {"first",
       {transfer(CollectiveKind::kSend, 1, "up"), transfer(CollectiveKind::kReceive, 1, "down")}},
      {"second",
       {transfer(CollectiveKind::kReceive, 0, "up"), transfer(CollectiveKind::kSend, 0, "down")}}};
  program.roles = {{.name = "first", .ranks = {0}, .calls = {{.block = BlockId(0), .repeat = 2}}},
                   {.name = "second", .ranks = {1}, .calls = {{.block = BlockId(1), .repeat = 2}}}};
  const RankPlan first = plan_of(program, 0);
  const RankPlan second = plan_of(program, 1);
  ASSERT_EQ(first.communicators.size(), 2U);
  EXPECT_EQ(first.communicators[0].name, "up from rank 0 to rank 1");
  EXPECT_EQ(first.communicators[1].name, "down from rank 1 to rank 0");
  EXPECT_EQ(first.operations[0].peer, 1);
  EXPECT_EQ(second.operations[0].peer, 0);
  EXPECT_EQ(second.operations[1].peer, 0);
  EXPECT_EQ(first.operations[2].ordinal, 1);  // The second iteration's send.
  EXPECT_EQ(describe(first, 2), "send up (layer 1, micro-batch 0; 1.00 MiB) to rank 1");
  EXPECT_EQ(describe(second, 0), "receive up (layer 0, micro-batch 0; 1.00 MiB) from rank 0");
}

TEST(Plan, FindsTheRootOfABroadcast) {
  Communication named{.kind = CollectiveKind::kBroadcast,
                      .group = AxisGroup{{0}, {}},
                      .bytes = 1_MiB,
                      .roots = {1, 2}};
  Communication unnamed = named;
  unnamed.roots.clear();
  const Program program = square({communicate("named", named), communicate("not", unnamed)});
  const RankPlan low = plan_of(program, 0);   // {0,1}: rank 1 is its second member
  const RankPlan high = plan_of(program, 3);  // {2,3}: rank 2 is its first
  EXPECT_EQ(low.operations[0].root, 1);
  EXPECT_EQ(high.operations[0].root, 0);
  EXPECT_EQ(low.operations[1].root, 0);
  EXPECT_EQ(describe(low, 0),
            "broadcast named (layer 0, micro-batch 0; 1.00 MiB) from rank 1 of ranks 0,1");
}

// 10 bytes of bf16 are 5 elements: shards of 3 for 2 members, 6 in all.
TEST(Plan, CountsElementsOfEachKind) {
  const auto of = [](CollectiveKind kind) {
    const Program program = square({communicate(
        "x", {.kind = kind, .group = AxisGroup{{0}, {}}, .bytes = 10_B, .dtype = DType::kBf16})});
    return elements_of(plan_of(program, 2), 0);
  };
  EXPECT_EQ(of(CollectiveKind::kAllReduce), (Elements{5, 5}));
  EXPECT_EQ(of(CollectiveKind::kBroadcast), (Elements{5, 5}));
  EXPECT_EQ(of(CollectiveKind::kAllGather), (Elements{3, 6}));
  EXPECT_EQ(of(CollectiveKind::kReduceScatter), (Elements{6, 3}));
  EXPECT_EQ(of(CollectiveKind::kAllToAll), (Elements{6, 6}));
  EXPECT_EQ(of(CollectiveKind::kShift), (Elements{5, 5}));
}

// Of ranks 0 to 3 each sends to the next, the last to the first.
TEST(Plan, ShiftsRoundTheEnd) {
  const Program program = square({communicate("x", {.kind = CollectiveKind::kShift,
                                                    .group = AxisGroup{{0, 1}, {}},
                                                    .bytes = 12_B,
                                                    .dtype = DType::kFp32})});
  EXPECT_THAT(messages_of(plan_of(program, 1), 0),
              ElementsAre(Message{true, 2, 0, 3}, Message{false, 0, 0, 3}));
  EXPECT_THAT(messages_of(plan_of(program, 3), 0),
              ElementsAre(Message{true, 0, 0, 3}, Message{false, 2, 0, 3}));
}

// 0 sends 4 B to 1 and 8 B to 2; 3 sends 4 B to 0 (fp32: 1, 2 and 1 elements).
TEST(Plan, ListsTheMessagesOfAnExchange) {
  const Program program =
      square({communicate("x", {.kind = CollectiveKind::kExchange,
                                .group = AxisGroup{{0, 1}, {}},
                                .bytes = 16_B,
                                .dtype = DType::kFp32,
                                .transfers = {{0, 1, 4_B}, {3, 0, 4_B}, {0, 2, 8_B}}})});
  const RankPlan plan = plan_of(program, 0);
  EXPECT_THAT(messages_of(plan, 0),
              ElementsAre(Message{true, 1, 0, 1}, Message{false, 3, 0, 1}, Message{true, 2, 1, 2}));
  EXPECT_EQ(elements_of(plan, 0), (Elements{3, 1}));
  EXPECT_EQ(elements_of(plan_of(program, 2), 0), (Elements{0, 2}));
}

TEST(Plan, RefusesAnOperationOnTwoStreams) {
  Program program = square({communicate("a", all_reduce(AxisGroup{{1}, {}}), 0)});
  program.blocks.push_back({"other", {communicate("a", all_reduce(AxisGroup{{1}, {}}), 1)}});
  program.roles = {{.name = "low", .ranks = {0, 1}, .calls = {{.block = BlockId(0)}}},
                   {.name = "high", .ranks = {2, 3}, .calls = {{.block = BlockId(1)}}}};
  ASSERT_TRUE(program::verify(program).ok());
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    EXPECT_THAT(
        error_of(plan_rank(program, rank)),
        Fails(Error::Code::kUnsupported,
              "rank 0 runs 'a' (operation 0 with tag 'a') on stream 'compute', but rank 2 runs 'a' "
              "(operation 0 with tag 'a') on stream 'side': a replay needs all members of an "
              "operation on one stream; give it the same stream in all roles"));
  }
}

// The order of two operations on one stream: a deadlock, which verify finds, and planning too.
TEST(Plan, RefusesDifferentOrders) {
  const Task a = communicate("a", all_reduce(AxisGroup{{1}, {}}));
  const Task b = communicate("b", all_reduce(AxisGroup{{1}, {}}));
  Program program = square({a, b});
  program.blocks.push_back({"other", {b, a}});
  program.roles = {{.name = "low", .ranks = {0, 1}, .calls = {{.block = BlockId(0)}}},
                   {.name = "high", .ranks = {2, 3}, .calls = {{.block = BlockId(1)}}}};
  EXPECT_THAT(program::verify(program).error().message, HasSubstr("deadlock"));
  EXPECT_THAT(
      error_of(plan_rank(program, 1)),
      Fails(Error::Code::kInvalidInput,
            HasSubstr("rank 0 issues 'a' (operation 0 with tag 'a') on stream 'compute' where "
                      "rank 2 issues 'b'")));
}

TEST(Plan, RefusesTransfersOfOneTagOnTwoStreams) {
  Program program;
  program.name = "pipe";
  program.mesh = {{"pipeline", 2}};
  program.streams = {{"compute"}, {"side"}};
  const auto transfer = [](CollectiveKind kind, std::int64_t peer, int stream) {
    return communicate("x", {.kind = kind, .group = AxisPeer{0, peer}, .bytes = 1_MiB, .tag = "x"},
                       stream);
  };
  program.blocks = {
      {"first", {transfer(CollectiveKind::kSend, 1, 0), transfer(CollectiveKind::kSend, 1, 1)}},
      {"second",
       {transfer(CollectiveKind::kReceive, 0, 0), transfer(CollectiveKind::kReceive, 0, 0)}}};
  program.roles = {{.name = "first", .ranks = {0}, .calls = {{.block = BlockId(0)}}},
                   {.name = "second", .ranks = {1}, .calls = {{.block = BlockId(1)}}}};
  ASSERT_TRUE(program::verify(program).ok());
  EXPECT_EQ(message_of(plan_rank(program, 1)),
            "role 'first' runs send with tag 'x' to one peer on two streams, 'compute' and 'side': "
            "a replay needs one; give the others a tag of their own");
}

// What must hold between the plans of all ranks.
void check_together(const Program& program) {
  std::map<std::int64_t, std::vector<std::int32_t>> members_of;
  // (number, tag, ordinal) -> instances that say so.
  std::map<std::tuple<std::int64_t, std::string, std::int64_t>, std::size_t> met;
  std::map<std::int64_t, std::vector<std::pair<std::string, std::int64_t>>> order_of;
  for (std::int32_t rank = 0; rank < program.ranks(); ++rank) {
    const auto planned = value_of(plan_rank(program, rank));
    const RankPlan& plan = planned;
    std::int64_t last = -1;
    for (const Communicator& communicator : plan.communicators) {
      EXPECT_GT(communicator.number, last);
      last = communicator.number;
      EXPECT_EQ(communicator.members.at(static_cast<std::size_t>(communicator.me)), rank);
      const auto [entry, is_new] = members_of.emplace(communicator.number, communicator.members);
      EXPECT_TRUE(is_new || entry->second == communicator.members);
    }
    std::map<std::int64_t, std::vector<std::pair<std::string, std::int64_t>>> own;
    for (std::size_t i = 0; i < plan.operations.size(); ++i) {
      const auto* communication = std::get_if<Communication>(&plan.task(i).body);
      ASSERT_EQ(plan.operations[i].communicator >= 0, communication != nullptr);
      if (!communication) continue;
      const auto& communicator =
          plan.communicators[static_cast<std::size_t>(plan.operations[i].communicator)];
      EXPECT_EQ(communicator.members, program::members_of(program, communication->group, rank));
      own[communicator.number].emplace_back(program::tag_of(plan.task(i)),
                                            plan.operations[i].ordinal);
      ++met[{communicator.number, program::tag_of(plan.task(i)), plan.operations[i].ordinal}];
    }
    for (auto& [number, sequence] : own) {
      const auto [entry, is_new] = order_of.emplace(number, sequence);
      EXPECT_TRUE(is_new || entry->second == sequence) << "communicator " << number;
    }
  }
  for (const auto& [operation, count] : met)
    EXPECT_EQ(count, members_of.at(std::get<0>(operation)).size());
}

TEST(Plan, FitsTogetherForPipelines) {
  for (int stages = 1; stages <= 4; ++stages)
    check_together(program::pipeline_program(stages, 4, 2));
}

TEST(Plan, FitsTogetherForRandomStrategies) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const Training training = random_training(random, 32);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(training));
    const auto program =
        value_of(lower::lower(training.model, training.strategy, {.launch_time = 1_us}));
    check_together(program);
    if (HasFailure()) break;
  }
}

}  // namespace foreshard::replay::plan_test
