#include "strategies/program/ir/verify.h"

#include "tests/strategies/program_ir/samples.h"
#include "tests/test.h"

#include "strategies/program/ir/internal/rank_classes.h"

namespace foreshard::program::verify_test {

std::string fault(const Program& program) {
  return message_of(verify(program));
}

// A valid program of two stages, changed. Roles: ranks 0 1 4 5 and 2 3 6 7. Blocks: 0 forward,
// 1 backward, 2 step, then transfers.
std::string fault_after(const std::function<void(Program&)>& change) {
  Program program = pipeline_program(2, 3, 2);
  change(program);
  return fault(program);
}

Communication& communication(Program& program, std::size_t block, std::size_t task) {
  return std::get<Communication>(program.blocks[block].tasks[task].body);
}

TEST(Verify, AcceptsPipelines) {
  for (const int stages : {1, 2, 3, 8})
    for (const int micro_batches : {1, 2, 5, 16})
      EXPECT_EQ(fault(pipeline_program(stages, micro_batches, 3)), "accepted")
          << stages << " stages, " << micro_batches << " micro-batches";
}

TEST(Verify, NamesAFaultyMeshAndTables) {
  EXPECT_THAT(fault_after([](Program& p) { p.mesh.clear(); }), HasSubstr("(invariant 1)"));
  EXPECT_THAT(fault_after([](Program& p) { p.mesh[0].size = 0; }),
              HasSubstr("axis 'tensor': has size 0 (invariant 1)"));
  EXPECT_THAT(fault_after([](Program& p) { p.mesh[0].size = std::int64_t{1} << 62; }),
              HasSubstr("more than 16777216 ranks"));
  EXPECT_THAT(fault_after([](Program& p) { p.mesh[1].name = "tensor"; }),
              HasSubstr("two axes are called 'tensor'"));
  EXPECT_THAT(fault_after([](Program& p) {
                p.device_of_rank = {0, 1};
              }),
              HasSubstr("names 2 devices for 8 ranks (invariant 2)"));
  EXPECT_THAT(fault_after([](Program& p) { p.device_of_rank = {0, 1, 2, 3, 4, 5, 6, 6}; }),
              HasSubstr("device 6 twice"));
  EXPECT_THAT(fault_after([](Program& p) { p.streams[1].name = "compute"; }),
              HasSubstr("two are called 'compute' (invariant 3)"));
  EXPECT_THAT(fault_after([](Program& p) { p.blocks[0].tasks[1].name = "\xff"; }),
              HasSubstr("not printable UTF-8 (invariant 3)"));
  EXPECT_THAT(fault_after([](Program& p) { p.launch_time = -1_us; }), HasSubstr("(invariant 4)"));
  EXPECT_THAT(fault_after([](Program& p) {
                p.launch_time_of_rank = {1_us, 2_us};
              }),
              HasSubstr("2 times for 8 ranks (invariant 4)"));
  EXPECT_THAT(fault_after([](Program& p) { p.launch_time_of_rank.assign(8, p.launch_time / 2); }),
              HasSubstr("not the longest of launch_time_of_rank (invariant 4)"));
  EXPECT_THAT(
      fault_after([](Program& p) { p.totals.tokens = std::numeric_limits<double>::infinity(); }),
      HasSubstr("(invariant 4)"));
}

TEST(Verify, WantsEveryRankInOneRole) {
  EXPECT_THAT(fault_after([](Program& p) { p.roles[0].ranks.pop_back(); }),
              HasSubstr("rank 5 has none (invariant 5)"));
  EXPECT_THAT(fault_after([](Program& p) { p.roles[0].ranks.push_back(6); }),
              HasSubstr("rank 6 has role 'stage 0' already"));
  EXPECT_THAT(fault_after([](Program& p) { p.roles[0].ranks.push_back(8); }),
              HasSubstr("rank 8 is outside the mesh"));
  EXPECT_THAT(fault_after([](Program& p) { std::swap(p.roles[0].ranks[0], p.roles[0].ranks[1]); }),
              HasSubstr("not ascending"));
}

TEST(Verify, NamesAFaultyTask) {
  EXPECT_THAT(fault_after([](Program& p) { p.blocks[0].tasks[1].after = {1}; }),
              HasSubstr("block 'forward' task 1 'gemm': waits for task 1, no earlier one"));
  EXPECT_THAT(fault_after([](Program& p) { p.blocks[0].tasks[1].after = {0}; }),
              HasSubstr("an allocation (invariant 6)"));
  EXPECT_THAT(fault_after([](Program& p) { p.blocks[2].tasks[3].after = {0}; }),
              HasSubstr("may not have (invariant 6)"));
  EXPECT_THAT(fault_after([](Program& p) { p.blocks[0].tasks[1].stream = StreamId(7); }),
              HasSubstr("names stream 7 of 7 (invariant 7)"));
  EXPECT_THAT(fault_after([](Program& p) { p.blocks[0].tasks[1].body = Kernel(Gemm{}); }),
              HasSubstr("size of the kernel is below 1 (invariant 8)"));
  EXPECT_THAT(fault_after([](Program& p) { communication(p, 0, 2).bytes = -1_B; }),
              HasSubstr("(invariant 8)"));
  EXPECT_THAT(fault_after([](Program& p) { p.blocks[2].tasks[1].optimizer = true; }),
              HasSubstr("(invariant 9)"));
  EXPECT_THAT(fault_after([](Program& p) { p.blocks[0].tasks[1].launches = -1; }),
              HasSubstr("`launches` is not 0 or more (invariant 9)"));
  EXPECT_THAT(fault_after([](Program& p) { p.blocks[0].tasks[0].launches = 2; }),
              HasSubstr("`launches` is for kernels and communication (invariant 9)"));
  EXPECT_THAT(fault_after([](Program& p) { p.blocks[0].tasks[0].body = Free{"input"}; }),
              HasSubstr("(invariant 10)"));
  EXPECT_THAT(fault_after([](Program& p) { p.roles[0].calls[0].block = BlockId(99); }),
              HasSubstr("role 'stage 0' call 0: names block 99"));
  EXPECT_THAT(fault_after([](Program& p) {
                p.roles[0].calls[1].after = {{1, -1}};
              }),
              HasSubstr("waits for call 1, no earlier one (invariant 11)"));
  EXPECT_THAT(fault_after([](Program& p) {
                p.roles[0].calls[1].after = {{0, 9}};
              }),
              HasSubstr("waits for task 9 of call 0"));
  EXPECT_THAT(fault_after([](Program& p) { p.roles[0].calls[0].repeat = 1 << 30; }),
              HasSubstr("(invariant 14)"));
}

// Blocks 'forward' and 'backward' add up a product over the tensor ranks and wait for it.
TEST(Verify, WantsReadersToWaitForConversions) {
  const auto forgets = [](Program& p) { p.blocks[0].tasks[3].after = {}; };  // the sum's reader
  // Two layers in one call.
  EXPECT_THAT(fault_after(forgets),
              AllOf(HasSubstr("block 'forward' task 2 'reduce': the next iteration does not wait "
                              "for it (invariant 23)")));
  const auto one_layer = [&](const std::function<void(Program&)>& change) {
    Program program = pipeline_program(1, 2, 1);
    forgets(program);
    for (const std::int32_t backward : {1, 3})
      program.roles[0].calls[static_cast<std::size_t>(backward)].after = {{backward - 1, -1}};
    change(program);
    return fault(program);
  };
  // Of one layer the next pass of the micro-batch computes behind it: call 1, the backward pass.
  EXPECT_EQ(one_layer([](Program&) {}), "accepted");  // it waits for all of call 0
  EXPECT_EQ(one_layer([](Program& p) { p.roles[0].calls[1].after = {{0, 2}}; }), "accepted");
  for (const std::vector<CallDependency>& after :
       {std::vector<CallDependency>{}, std::vector<CallDependency>{{0, 1}}})
    EXPECT_THAT(one_layer([&](Program& p) { p.roles[0].calls[1].after = after; }),
                HasSubstr("role 'stage 0' call 0 block 'forward' task 2 'reduce': call 1 does not "
                          "wait for it (invariant 23)"));
  // On the first stream it is before the next kernel anyway, and gradients have readers elsewhere.
  EXPECT_EQ(one_layer([](Program& p) {
              p.roles[0].calls[1].after = {};
              p.blocks[0].tasks[2].stream = StreamId(0);
            }),
            "accepted");
  EXPECT_EQ(one_layer([](Program& p) {
              p.roles[0].calls[1].after = {};
              communication(p, 0, 2).purpose = Purpose::kData;
            }),
            "accepted");
}

// Block 'forward' task 2 of both roles, over pairs (0 1), (2 3), (4 5), (6 7).
TEST(Verify, HoldsAnExchangeToItsTransfers) {
  const auto with = [](std::vector<Transfer> transfers, Bytes bytes) {
    return fault_after([&](Program& p) {
      auto& what = communication(p, 0, 2);
      what.kind = CollectiveKind::kExchange;
      what.transfers = std::move(transfers);
      what.bytes = bytes;
    });
  };
  EXPECT_EQ(with({{0, 1, 1_B}, {3, 2, 2_B}, {4, 5, 1_B}, {5, 4, 1_B}, {6, 7, 1_B}}, 6_B),
            "accepted");
  EXPECT_THAT(with({}, 0_B), HasSubstr("the group of rank 0 exchanges nothing (invariant 19)"));
  EXPECT_THAT(with({{0, 2, 1_B}}, 1_B),
              HasSubstr("the transfer from rank 0 to 2 is not within one group (invariant 19)"));
  EXPECT_THAT(with({{1, 1, 1_B}}, 1_B), HasSubstr("is not a communication"));
  EXPECT_THAT(with({{1, 8, 1_B}}, 1_B), HasSubstr("outside the mesh"));
  EXPECT_THAT(with({{1, 0, 0_B}}, 0_B), HasSubstr("not of a finite size above 0"));
  EXPECT_THAT(with({{0, 1, 1_B}, {3, 2, 2_B}, {4, 5, 1_B}, {6, 7, 1_B}}, 6_B),
              HasSubstr("transfers of 5.000000 B in an exchange of 6.000000 B"));
  EXPECT_THAT(fault_after([](Program& p) {
                communication(p, 0, 2).transfers = {{0, 1, 1_B}};
              }),
              HasSubstr("only an exchange lists transfers"));
}

TEST(Verify, HoldsABroadcastToOneRootForEachGroup) {
  const auto with = [](std::vector<std::int32_t> roots) {
    return fault_after([&](Program& p) {
      communication(p, 0, 2).kind = CollectiveKind::kBroadcast;
      communication(p, 0, 2).roots = std::move(roots);
    });
  };
  EXPECT_EQ(with({}), "accepted");
  EXPECT_EQ(with({1, 2, 5, 6}), "accepted");
  EXPECT_THAT(with({1, 2, 5}), HasSubstr("the group of rank 6 has no root (invariant 20)"));
  EXPECT_THAT(with({0, 1, 2, 4, 6}), HasSubstr("root 1 is the second of its group"));
  EXPECT_THAT(with({9}), HasSubstr("root 9 is in no group"));
  EXPECT_THAT(fault_after([](Program& p) { communication(p, 0, 2).roots = {0}; }),
              HasSubstr("only a broadcast has roots"));
}

TEST(Verify, NamesAFaultyGroup) {
  const auto with_group = [](const Group& group) {
    return fault_after([&](Program& p) { communication(p, 0, 2).group = group; });
  };
  EXPECT_THAT(with_group(AxisGroup{{3}, {}}), HasSubstr("names mesh axis 3 of 3 (invariant 12)"));
  EXPECT_THAT(with_group(AxisGroup{{0, 0}, {}}), HasSubstr("not ascending"));
  EXPECT_THAT(with_group(AxisGroup{{0, 1}, {0}}), HasSubstr("more than one axis"));
  EXPECT_THAT(with_group(AxisGroup{{0}, {0, 2}}), HasSubstr("lists coordinate 2 of axis 'tensor'"));
  EXPECT_THAT(with_group(RankGroups{{{0, 1}, {1, 2}}}), HasSubstr("in two groups (invariant 13)"));
  EXPECT_THAT(with_group(RankGroups{{{0, 8}}}), HasSubstr("lists rank 8"));
  EXPECT_THAT(with_group(AxisPeer{0, 0}),
              HasSubstr("only send and receive may name a peer (invariant 14)"));
}

TEST(Verify, BalancesBuffers) {
  EXPECT_THAT(fault_after([](Program& p) { p.blocks[1].tasks.pop_back(); }),
              AllOf(HasSubstr("buffer 'input' of chunk 0, micro-batch 0, layer 0"),
                    HasSubstr("never freed")));
  EXPECT_THAT(fault_after([](Program& p) {
                p.blocks[0].tasks.erase(p.blocks[0].tasks.begin());
                for (auto& t : p.blocks[0].tasks)
                  for (auto& a : t.after) --a;
              }),
              HasSubstr("freed, but not live (invariant 15)"));
  EXPECT_THAT(fault_after([](Program& p) { p.roles[0].calls[0].layer_step = 0; }),
              HasSubstr("allocated while live"));
}

TEST(Verify, WantsRanksInTheirGroups) {
  EXPECT_THAT(
      fault_after([](Program& p) {
        communication(p, 0, 2).group = AxisGroup{{0}, {0}};
      }),
      HasSubstr("rank 1 (role 'stage 0'): names a group for communication that it is not in "
                "(invariant 16)"));
  EXPECT_THAT(fault_after([](Program& p) {
                for (Block& block : p.blocks)
                  if (block.name == "send forward of stage 0")
                    std::get<Communication>(block.tasks[0].body).group = AxisPeer{1, 0};
              }),
              HasSubstr("itself (invariant 16)"));
}

// Stage 1 alone reduces over the pipeline axis, on which stage 0 never speaks.
TEST(Verify, FindsAMemberThatNeverSpeaks) {
  EXPECT_THAT(
      fault_after([](Program& p) {
        Block block{"lonely", {p.blocks[0].tasks[2]}};
        block.tasks[0].after.clear();
        std::get<Communication>(block.tasks[0].body).group = AxisGroup{{1}, {}};
        p.roles[1].calls.push_back({.block = BlockId(static_cast<std::int64_t>(p.blocks.size()))});
        p.blocks.push_back(block);
      }),
      AllOf(HasSubstr("rank 2 (role 'stage 1')"), HasSubstr("rank 0 (role 'stage 0')"),
            HasSubstr("never does so (invariant 17)")));
}

TEST(Verify, ComparesTheTwoEndsOfATransfer) {
  const auto with_receive = [](const std::function<void(Block&)>& change) {
    return fault_after([&](Program& p) {
      for (Block& block : p.blocks)
        if (block.name == "receive forward of stage 1") change(block);
    });
  };
  EXPECT_THAT(with_receive([](Block& b) { std::get<Communication>(b.tasks[0].body).bytes = 7_B; }),
              AllOf(HasSubstr("send of 1048576.0"), HasSubstr("receive of 7.0"),
                    HasSubstr("(invariant 17)")));
  EXPECT_THAT(with_receive([](Block& b) { std::get<Communication>(b.tasks[0].body).tag = "x"; }),
              HasSubstr("makes 3 send(s) with tag 'forward', but rank 2 (role 'stage 1') makes 0 "
                        "receive(s)"));
  EXPECT_THAT(with_receive([](Block& b) { b.tasks.push_back(b.tasks[0]); }),
              HasSubstr("makes 6 receive(s)"));
}

// Both ranks send before they receive, on one stream: each send waits for a receive behind a send.
Program crossed_transfers(StreamId receive_stream) {
  Program program;
  program.name = "crossed";
  program.mesh = {{"pair", 2}};
  program.streams = {{"compute"}, {"network"}, {"other"}};
  for (std::int32_t r = 0; r < 2; ++r) {
    const auto transfer = [&](CollectiveKind kind, StreamId stream) {
      const std::string name = kind == CollectiveKind::kSend ? "send" : "receive";
      return Task{
          name,
          Communication{.kind = kind, .group = AxisPeer{0, 1 - r}, .bytes = 1_B, .tag = "x"},
          stream,
          {}};
    };
    program.blocks.push_back({"swap of " + std::to_string(r),
                              {transfer(CollectiveKind::kSend, StreamId(1)),
                               transfer(CollectiveKind::kReceive, receive_stream)}});
    program.roles.push_back({"rank " + std::to_string(r), {r}, {{.block = BlockId(r)}}, {}});
  }
  return program;
}

TEST(Verify, FindsDeadlocksAndNamesTheCycle) {
  EXPECT_EQ(fault(crossed_transfers(StreamId(2))), "accepted");
  EXPECT_THAT(fault(crossed_transfers(StreamId(1))),
              AllOf(HasSubstr("deadlock: rank 0 (role 'rank 0') call 0 'swap of 0' task 'send', "
                              "which waits for rank 1 (role 'rank 1') call 0 'swap of 1' task "
                              "'send', which waits for the first"),
                    HasSubstr("(invariant 18)")));
}

// A Sync between them does the same over two streams: the host never comes to launch the receive.
TEST(Verify, SeesDeadlocksThroughTheHost) {
  Program program = crossed_transfers(StreamId(2));
  for (Block& block : program.blocks)
    block.tasks.insert(block.tasks.begin() + 1, {"wait", Sync{}, {}, {}});
  EXPECT_THAT(fault(program), AllOf(HasSubstr("deadlock"), HasSubstr("'wait'")));
}

// Two collectives in a different order on the members of one group.
TEST(Verify, SeesCollectivesInDifferentOrder) {
  Program program;
  program.mesh = {{"pair", 2}};
  program.streams = {{"compute"}, {"network"}};
  const auto reduce = [](const std::string& tag) {
    return Task{
        tag, Communication{.group = AxisGroup{{0}, {}}, .bytes = 1_B, .tag = {}}, StreamId(1), {}};
  };
  program.blocks = {{"a then b", {reduce("a"), reduce("b")}},
                    {"b then a", {reduce("b"), reduce("a")}}};
  program.roles = {{"first", {0}, {{.block = BlockId(0)}}, {}},
                   {"second", {1}, {{.block = BlockId(1)}}, {}}};
  EXPECT_THAT(fault(program), HasSubstr("deadlock"));
  program.roles[1].calls[0].block = BlockId(0);
  EXPECT_EQ(fault(program), "accepted");
}

// One role, whose ranks 0 1 pair up with 2 3 and 4 5 stay among themselves: the members of written
// out groups are told apart, and a group written in two ways is one group.
TEST(Verify, SplitsRolesWhereGroupsDiffer) {
  Program program;
  program.mesh = {{"all", 6}};
  program.streams = {{"compute"}};
  const auto reduce = [](Group group) {
    return Task{
        "r", Communication{.group = std::move(group), .bytes = 1_B, .tag = {}}, StreamId(0), {}};
  };
  program.blocks = {{"a", {reduce(RankGroups{{{0, 2}, {1, 3}, {4, 5}}})}},
                    {"b", {reduce(RankGroups{{{0, 2}, {1, 3}}})}}};
  program.roles = {{"mixed", {0, 1, 4, 5}, {{.block = BlockId(0)}}, {}},
                   {"other", {2, 3}, {{.block = BlockId(1)}}, {}}};
  EXPECT_EQ(fault(program), "accepted");
  const auto classes = value_of(internal::rank_classes(program));
  ASSERT_EQ(classes.classes.size(), 3u);
  EXPECT_EQ(classes.classes[0].representative, 0);
  EXPECT_EQ(classes.classes[1].representative, 4);
  EXPECT_EQ(classes.classes[2].representative, 2);

  program.roles[1].calls.push_back({.block = BlockId(1)});
  EXPECT_THAT(fault(program), AllOf(HasSubstr("rank 0"), HasSubstr("makes 1 operation(s)"),
                                    HasSubstr("rank 2 (role 'other') makes 2")));
}

// Many ranks, few classes.
TEST(Verify, WorksOnClassesOfRanks) {
  Program program = pipeline_program(16, 64, 6);
  program.mesh[2].size = 512;
  for (std::size_t stage = 0; stage < 16; ++stage) {
    program.roles[stage].ranks.clear();
    for (std::int32_t r = 0; r < program.ranks(); ++r)
      if (r / 2 % 16 == static_cast<std::int32_t>(stage)) program.roles[stage].ranks.push_back(r);
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(fault(program), "accepted");
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  std::printf("16,384 ranks, 16 roles, 64 micro-batches: verified in %.0f ms\n",
              1e3 * time.count());
  EXPECT_LT(time.count(), 10);
}

}  // namespace foreshard::program::verify_test
