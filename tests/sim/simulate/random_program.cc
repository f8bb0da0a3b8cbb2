#include "tests/sim/simulate/random_program.h"

#include <array>
#include <string>

#include "strategies/program/ir/group.h"
#include "strategies/program/ir/program.h"

namespace foreshard::sim {
namespace {

using program::CollectiveKind;
using program::Communication;
using program::Program;
using program::StreamId;

constexpr std::int32_t kWithin = 0;
constexpr std::int32_t kStages = 1;
constexpr std::int64_t kStreams = 4;

class Writer {
 public:
  Writer(std::mt19937& random, std::int64_t ranks, bool has_host)
      : random_(random), has_host_(has_host) {
    const std::int64_t stages =
        ranks % 2 == 0 && ranks > 2 ? 1 + below(2) : 1 + (ranks - 1) * below(2);
    program_.name = "random";
    program_.mesh = {{"within", ranks / stages}, {"stages", stages}};
    program_.streams = {{"compute"}, {"one"}, {"two"}, {"three"}};
    program_.launch_time = below(2) == 0 ? 0_s : 1_us;
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      program::Role role{.name = "stage " + std::to_string(stage)};
      for (std::int64_t r = 0; r < ranks / stages; ++r)
        role.ranks.push_back(static_cast<std::int32_t>(stage * (ranks / stages) + r));
      program_.roles.push_back(std::move(role));
    }
  }

  Program run() {
    const std::int64_t operations = 6 + below(14);
    for (std::int64_t i = 0; i < operations; ++i) add();
    for (std::size_t role = 0; role < program_.roles.size(); ++role)
      call(role, {.name = "end", .body = kernel(), .stream = StreamId{0}});
    return std::move(program_);
  }

 private:
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }
  std::size_t some_role() { return static_cast<std::size_t>(below(std::ssize(program_.roles))); }
  StreamId some_stream() { return StreamId{1 + below(kStreams - 1)}; }
  Bytes some_bytes() { return Bytes::from_base(static_cast<double>(below(40'000'000))); }

  Kernel kernel() {
    return Pass{.kind = PassKind::kCast, .rows = 1 + below(100'000'000), .dtype = DType::kBf16};
  }

  // Each task is a block of its own, named after its number.
  void call(std::size_t role, program::Task task) {
    const auto block = program::BlockId(std::ssize(program_.blocks));
    program_.blocks.push_back({task.name + " " + std::to_string(block.value()), {std::move(task)}});
    auto& calls = program_.roles[role].calls;
    program::Call made{.block = block, .repeat = 1};
    for (std::int64_t n = below(3); n > 0 && !calls.empty(); --n) {
      const auto earlier = static_cast<std::int32_t>(below(std::ssize(calls)));
      if (made.after.empty() || made.after.back().call < earlier)
        made.after.push_back({.call = earlier});
    }
    calls.push_back(std::move(made));
  }

  void collective(const std::vector<std::size_t>& roles, std::vector<std::int32_t> axes,
                  const std::string& tag) {
    constexpr std::array kKinds{CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                                CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast,
                                CollectiveKind::kAllToAll,      CollectiveKind::kExchange,
                                CollectiveKind::kShift};
    Communication what{.kind = kKinds[static_cast<std::size_t>(below(kKinds.size()))],
                       .group = program::AxisGroup{.axes = std::move(axes)},
                       .bytes = some_bytes(),
                       .tag = tag};
    if (what.kind == CollectiveKind::kExchange) exchange(what, roles);
    for (const std::size_t role : roles)
      call(role, {.name = tag, .body = what, .stream = some_stream()});
  }

  // Some messages within every group: always from its first rank, else at random.
  void exchange(Communication& what, const std::vector<std::size_t>& roles) {
    for (const std::size_t role : roles) {
      for (const std::int32_t rank : program_.roles[role].ranks) {
        const auto members = program::members_of(program_, what.group, rank);
        const auto other = members[static_cast<std::size_t>(below(std::ssize(members)))];
        if (members.front() == rank && other == rank)
          what.transfers.push_back({rank, members.back(), 1_MB});
        else if (other != rank && (members.front() == rank || below(3) > 0))
          what.transfers.push_back({rank, other, 1_kB * static_cast<double>(1 + below(9000))});
      }
    }
    // Ranks outside these roles do not call it: their groups have to be left out.
    program::RankGroups groups;
    for (const std::size_t role : roles)
      for (const std::int32_t rank : program_.roles[role].ranks)
        if (const auto members = program::members_of(program_, what.group, rank);
            members.front() == rank)
          groups.groups.push_back(members);
    what.group = std::move(groups);
    what.bytes = 0_B;
    for (const program::Transfer& transfer : what.transfers) what.bytes += transfer.bytes;
  }

  void transfer() {
    const std::size_t from = some_role();
    const std::size_t to = some_role();
    if (from == to) return;
    Communication what{.kind = CollectiveKind::kSend,
                       .group = program::AxisPeer{kStages, static_cast<std::int64_t>(to)},
                       .bytes = some_bytes(),
                       .purpose = program::Purpose::kPipeline,
                       .tag = "transfer"};
    call(from, {.name = "send", .body = what, .stream = some_stream()});
    what.kind = CollectiveKind::kReceive;
    what.group = program::AxisPeer{kStages, static_cast<std::int64_t>(from)};
    call(to, {.name = "receive", .body = what, .stream = some_stream()});
  }

  void with_host() {
    constexpr std::array kKinds{CollectiveKind::kToHost, CollectiveKind::kFromHost,
                                CollectiveKind::kOnHost};
    const Communication what{.kind = kKinds[static_cast<std::size_t>(below(kKinds.size()))],
                             .group = program::AxisGroup{},
                             .bytes = some_bytes(),
                             .purpose = program::Purpose::kOffload};
    call(some_role(),
         {.name = std::string(program::name_of(what.kind)), .body = what, .stream = some_stream()});
  }

  void add() {
    std::vector<std::size_t> all;
    for (std::size_t role = 0; role < program_.roles.size(); ++role) all.push_back(role);
    const bool alone = program_.mesh[kWithin].size == 1;  // nobody to talk to within the stage
    switch (below(has_host_ ? 9 : 8)) {
      case 0:
      case 1:
        return call(some_role(), {.name = "kernel", .body = kernel(), .stream = StreamId{0}});
      case 2:
        return alone ? transfer() : collective(all, {kWithin}, "within");
      case 3:
        return alone ? transfer() : collective({some_role()}, {kWithin}, "within one");
      case 4:
        return collective(all, {kWithin, kStages}, "all");
      case 5:
        return call(some_role(), {.name = "sync", .body = program::Sync{}});
      case 8:
        return with_host();
      default:
        return transfer();
    }
  }

  std::mt19937& random_;
  bool has_host_;
  Program program_;
};

}  // namespace

Program random_program(std::mt19937& random, std::int64_t ranks, bool has_host) {
  return Writer(random, ranks, has_host).run();
}

}  // namespace foreshard::sim
