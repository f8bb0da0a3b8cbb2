// The collectives on a wire in memory: members are advanced in turn or in a random order, by one
// thread, and every number that comes out is compared with what pattern.h expects.
#include "validate/replay/host/collective.h"

#include <cstring>
#include <rapidcheck.h>

#include "tests/test.h"
#include "tests/validate/replay/host/memory_wire.h"

#include "strategies/program/ir/verify.h"
#include "validate/replay/number.h"
#include "validate/replay/pattern.h"

namespace foreshard::replay::host::collective_test {

using program::CollectiveKind;
using program::Communication;
using program::Program;

// All ranks of a mesh of one axis run `tasks`, one after another.
Program program_of(std::int32_t ranks, std::vector<program::Task> tasks) {
  Program program;
  program.name = "collectives";
  program.mesh = {{"data", ranks}};
  program.streams = {{"compute"}};
  program.blocks = {{"block", std::move(tasks)}};
  std::vector<std::int32_t> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  program.roles = {{.name = "all", .ranks = all, .calls = {{.block = program::BlockId(0)}}}};
  return program;
}
program::Task task_of(const std::string& name, Communication communication) {
  return {.name = name, .body = std::move(communication), .stream = program::StreamId(0)};
}
Communication communication(CollectiveKind kind, Bytes bytes, DType dtype = DType::kFp32) {
  return {.kind = kind,
          .group = program::AxisGroup{.axes = {0}, .coordinates = {}},
          .bytes = bytes,
          .dtype = dtype};
}

std::size_t bytes_of(std::int64_t elements, DType dtype) {
  return static_cast<std::size_t>(elements) * static_cast<std::size_t>(size_of(dtype) / 1_B);
}

struct Outcome {
  std::vector<std::string> faults;
  std::vector<std::int64_t> messages;  // Per operation, over all members.
  bool stuck = false;
};

// Runs the Program's communications, one after another, as `plans` (one per rank) say.
Outcome run(const std::vector<RankPlan>& plans, Net& net, unsigned seed) {
  Outcome outcome;
  std::vector<std::unique_ptr<MemoryWire>> wires;
  wires.reserve(plans.size());
  for (const RankPlan& plan : plans) wires.push_back(std::make_unique<MemoryWire>(net, plan.rank));
  std::mt19937 random(seed);
  for (std::size_t instance = 0; instance < plans[0].operations.size(); ++instance) {
    struct Member {
      std::vector<std::byte> send, receive, stage;
      std::unique_ptr<Collective> collective;
      bool done = false;
    };
    std::vector<Member> members(plans.size());
    const std::int64_t before = net.messages();
    for (std::size_t r = 0; r < plans.size(); ++r) {
      const RankPlan& plan = plans[r];
      const auto& what = std::get<Communication>(plan.task(instance).body);
      const Operation& operation = plan.operations[instance];
      const Communicator& communicator =
          plan.communicators[static_cast<std::size_t>(operation.communicator)];
      CollectiveSpec spec{.kind = what.kind,
                          .dtype = what.dtype,
                          .channel = communicator.number,
                          .members = communicator.members,
                          .me = communicator.me,
                          .peer = operation.peer,
                          .root = std::max(0, operation.root)};
      if (is_group_call(what.kind)) spec.messages = messages_of(plan, instance);
      const Elements elements = elements_of(plan, instance);
      Member& member = members[r];
      member.send.assign(bytes_of(elements.send, what.dtype), std::byte{0xa5});
      member.receive.assign(bytes_of(elements.receive, what.dtype), std::byte{0xa5});
      member.stage.resize(stage_bytes(spec));
      write_given(plan, instance, member.send, member.receive);
      member.collective =
          start_collective(spec, *wires[r], member.send, member.receive, member.stage);
    }
    int still = 0;
    while (!std::ranges::all_of(members, &Member::done)) {
      std::vector<std::size_t> order(members.size());
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      bool moved = false;
      for (const std::size_t r : order) {
        if (members[r].done) continue;
        const auto progress = members[r].collective->advance();
        if (!progress) {
          outcome.faults.push_back(progress.error().message);
          return outcome;
        }
        moved = moved || *progress != Progress::kStalled;
        members[r].done = *progress == Progress::kDone;
      }
      still = moved ? 0 : still + 1;
      if (still > 2) {
        outcome.stuck = true;
        return outcome;
      }
    }
    outcome.messages.push_back(net.messages() - before);
    for (std::size_t r = 0; r < plans.size(); ++r) {
      Verification verification;
      check_expected(plans[r], instance, members[r].receive, verification);
      for (auto& fault : verification.faults) outcome.faults.push_back(std::move(fault));
    }
  }
  return outcome;
}

std::vector<RankPlan> plans_of(const Program& program) {
  EXPECT_EQ(message_of(program::verify(program)), "accepted");
  std::vector<RankPlan> plans;
  for (std::int32_t rank = 0; rank < program.ranks(); ++rank)
    plans.push_back(value_of(plan_rank(program, rank)));
  return plans;
}

Outcome run(const Program& program, unsigned seed = 1) {
  Net net(static_cast<std::int32_t>(program.ranks()));
  Outcome outcome = run(plans_of(program), net, seed);
  EXPECT_TRUE(net.silent() || outcome.stuck || !outcome.faults.empty());
  return outcome;
}

constexpr std::array kGroupKinds{CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                                 CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast,
                                 CollectiveKind::kAllToAll,      CollectiveKind::kShift};

// By hand, 4 members: a ring of n members sends n (n-1) messages in a reduce-scatter or all-gather
// of one chunk a segment, twice as many in an all-reduce; a chain n-1; all-to-all n (n-1); a shift
// n.
TEST(Collective, SendsTheMessagesOfItsAlgorithm) {
  std::vector<program::Task> tasks;
  tasks.reserve(kGroupKinds.size());
  for (const CollectiveKind kind : kGroupKinds)
    tasks.push_back(task_of("t" + std::to_string(tasks.size()), communication(kind, 1_MiB)));
  const Outcome outcome = run(program_of(4, tasks));
  EXPECT_THAT(outcome.faults, IsEmpty());
  EXPECT_THAT(outcome.messages, ElementsAre(24, 12, 12, 4 * 3, 12, 4));
}

// 1 MiB of a broadcast are 4 chunks of 256 KiB, each sent by 3 of the 4 members. 3 MiB among 4:
// segments of 768 KiB are 3 chunks.
TEST(Collective, CutsSegmentsIntoChunks) {
  const Outcome outcome =
      run(program_of(4, {task_of("r", communication(CollectiveKind::kReduceScatter, 3_MiB))}));
  EXPECT_THAT(outcome.faults, IsEmpty());
  EXPECT_THAT(outcome.messages, ElementsAre(3 * 12));
}

// Every kind, members 1 to 7, every dtype, any order in which the members come to run: nobody
// waits for ever, though no message is buffered, and all numbers are right.
TEST(Collective, DeliversTheRightNumbers) {
  EXPECT_TRUE(rc::check([] {
    const auto ranks = *rc::gen::inRange<std::int32_t>(1, 8);
    const auto dtype = *rc::gen::elementOf(std::vector{
        DType::kFp32, DType::kTf32, DType::kFp16, DType::kBf16, DType::kFp8, DType::kInt8,
        DType::kInt32, DType::kInt64});  // numbers of 4 bits are refused before
    const auto elements = *rc::gen::element<std::int64_t>(0, 1, 3, 64, 1000, 65'536, 400'003);
    std::vector<program::Task> tasks;
    for (const CollectiveKind kind : kGroupKinds) {
      Communication what =
          communication(kind, static_cast<double>(elements) * size_of(dtype), dtype);
      if (kind == CollectiveKind::kBroadcast) what.roots = {*rc::gen::inRange(0, ranks)};
      tasks.push_back(task_of("t" + std::to_string(tasks.size()), what));
    }
    const Outcome outcome = run(program_of(ranks, tasks), *rc::gen::arbitrary<unsigned>());
    RC_ASSERT(!outcome.stuck);
    RC_ASSERT(outcome.faults.empty());
  }));
}

TEST(Collective, ExchangesAnyMessages) {
  EXPECT_TRUE(rc::check([] {
    const auto ranks = *rc::gen::inRange<std::int32_t>(2, 6);
    const auto count = *rc::gen::inRange(1, 12);
    Communication what = communication(CollectiveKind::kExchange, 0_B);
    for (int i = 0; i < count; ++i) {
      const Bytes bytes = *rc::gen::inRange(1, 3000) * 4_B;
      const auto from = *rc::gen::inRange(0, ranks);
      const auto to = (from + *rc::gen::inRange(1, ranks)) % ranks;
      what.transfers.push_back({.from = from, .to = to, .bytes = bytes});
      what.bytes += bytes;
    }
    const Program program = program_of(ranks, {task_of("e", what)});
    const Outcome outcome = run(program, *rc::gen::arbitrary<unsigned>());
    RC_ASSERT(!outcome.stuck);
    RC_ASSERT(outcome.faults.empty());
  }));
}

// A bit that is wrong in one message is found, wherever it is: sums and copies alike.
TEST(Collective, VerificationFindsOneWrongBit) {
  for (const CollectiveKind kind : kGroupKinds) {
    const Program program = program_of(3, {task_of("grads", communication(kind, 6000_B))});
    Net net(3);
    net.spoil_message(1);
    EXPECT_FALSE(run(plans_of(program), net, 7).faults.empty()) << static_cast<int>(kind);
  }
}

// Rank 2 takes the 2nd operation for the 1st: what it gives is another operation's.
TEST(Collective, VerificationFindsSwappedOperations) {
  const Communication reduce = communication(CollectiveKind::kAllReduce, 4000_B);
  const Program program = program_of(3, {task_of("grads", reduce), task_of("grads", reduce)});
  std::vector<RankPlan> plans = plans_of(program);
  std::swap(plans[2].operations[0].ordinal, plans[2].operations[1].ordinal);
  Net net(3);
  const Outcome outcome = run(plans, net, 7);
  ASSERT_FALSE(outcome.faults.empty());
  EXPECT_THAT(outcome.faults[0], HasSubstr("all_reduce grads #0 on rank 0: element "));
  EXPECT_THAT(outcome.faults[0], HasSubstr(", not "));
}

// Rank 2 has the numbers of rank 1, and the Program says that the root is rank 0.
TEST(Collective, VerificationFindsTheWrongRoot) {
  Communication broadcast = communication(CollectiveKind::kBroadcast, 4000_B);
  const Program right = program_of(3, {task_of("weights", broadcast)});
  broadcast.roots = {1};
  const Program wrong = program_of(3, {task_of("weights", broadcast)});
  std::vector<std::byte> received(4000);
  write_given(plans_of(wrong)[1], 0, {}, received);
  Verification verification;
  check_expected(plans_of(right)[2], 0, received, verification);
  EXPECT_FALSE(verification.faults.empty());
  EXPECT_EQ(verification.operations, 1);
  EXPECT_EQ(verification.elements, 1000);
}

// Sums over 40,000 ranks are about 80,000, which fp32 and bf16 hold; fp16 ends at 65504.
TEST(Collective, VerificationAcceptsSumsOverManyRanks) {
  constexpr std::int32_t kRanks = 40'000;
  for (const DType dtype : {DType::kFp32, DType::kFp16}) {
    const Program program = program_of(
        kRanks,
        {task_of("grads", communication(CollectiveKind::kAllReduce, size_of(dtype), dtype))});
    const RankPlan plan = value_of(plan_rank(program, 0));
    std::vector<int> sum(1);
    expected(plan, 0, 0, sum);
    EXPECT_GT(sum[0], 65504);
    std::vector<std::byte> received(bytes_of(1, dtype));
    if (dtype == DType::kFp32) {
      store(static_cast<float>(sum[0]), *reinterpret_cast<float*>(received.data()));
    } else {
      store(static_cast<float>(sum[0]), *reinterpret_cast<Fp16*>(received.data()));
    }
    Verification verification;
    check_expected(plan, 0, received, verification);
    EXPECT_THAT(verification.faults, IsEmpty());
  }
}

// In fp32 1 + 2 = 3; int8 wraps: 100 + 100 = 200 - 256; bf16 rounds to even: 256 + 1 = 257 lies
// between 256 and 258, whose significands are even and odd.
TEST(Collective, AddsInTheDtype) {
  const auto sum = [](auto a, auto b, DType dtype) {
    decltype(a) out;
    std::vector<std::byte> x(sizeof a), y(sizeof a), z(sizeof a);
    std::memcpy(x.data(), &a, sizeof a);
    std::memcpy(y.data(), &b, sizeof a);
    add(dtype, x, y, z);
    std::memcpy(&out, z.data(), sizeof a);
    return out;
  };
  EXPECT_EQ(sum(1.0F, 2.0F, DType::kFp32), 3.0F);
  EXPECT_EQ(sum(std::int8_t{100}, std::int8_t{100}, DType::kInt8), std::int8_t{-56});
  EXPECT_EQ(sum(std::int64_t{1} << 40, std::int64_t{1}, DType::kInt64),
            (std::int64_t{1} << 40) + 1);
  Bf16 a{}, b{};
  store(256.0F, a);
  store(1.0F, b);
  EXPECT_EQ(to_float(sum(a, b, DType::kBf16)), 256.0F);
}

}  // namespace foreshard::replay::host::collective_test
