/// \file
/// One rank's part of a Program, ready to be carried out: its instances (expander), what each
/// communication needs (which communicator, which peer), and the communicators to be made.
///
/// **Communicators.** Libraries run the operations of one communicator one after another, in the
/// order in which each member issues them. So operations that the Program leaves unordered must
/// not share one: collectives and exchanges of one group share a communicator per stream;
/// transfers have one per sender, receiver and tag. Every rank numbers all communicators of the
/// job alike and makes those that it belongs to in ascending order, which cannot deadlock: of the
/// unmade ones the lowest is next for each of its members.
///
/// `plan_rank` looks at all ranks, so that all refuse the same Program with the same words: members
/// that run an operation on different streams, and (though verify finds that as a deadlock) members
/// that issue the operations of one communicator in different orders.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/program/ir/expand.h"
#include "strategies/program/ir/program.h"

namespace foreshard::replay {

struct Communicator {
  std::int64_t number = 0;              ///< Among all of the job; ids are exchanged under it.
  std::vector<std::int32_t> members{};  ///< Ranks, ascending.
  std::int32_t me = 0;                  ///< This rank's place among them.
  std::string name{};                   ///< For people: "tensor of ranks 0-7 on stream compute".
};

/// What an instance's communication needs beside its task.
struct Operation {
  std::int32_t communicator = -1;  ///< Index into RankPlan::communicators; -1: no communication.
  std::int32_t peer = -1;          ///< Of a transfer: the peer's place among the members.
  std::int32_t root = -1;          ///< Of a broadcast: likewise.
  std::int64_t ordinal = 0;        ///< n-th operation of its tag in its group, from 0.
};

struct RankPlan {
  const program::Program* program = nullptr;
  std::int32_t rank = 0;
  std::size_t role = 0;
  program::Expansion expansion{};
  program::MemoryEvents memory{};
  std::vector<Communicator> communicators{};  ///< By number.
  std::vector<Operation> operations{};        ///< By instance.

  const program::Task& task(std::size_t instance) const {
    return program::task_of(*program, program->roles[role], expansion.instances[instance]);
  }
};

/// \param program  must outlive the plan.
/// \pre verify(program) finds nothing; rank < program.ranks().
/// \return kInvalidInput where members would issue a communicator's operations in different
///     orders (names both ranks, both tasks), kUnsupported where one does so on different streams.
Result<RankPlan> plan_rank(const program::Program& program, std::int32_t rank);

/// How many elements of its dtype a rank hands over and gets. Where bytes do not make whole (equal)
/// elements or shards, sizes are rounded up.
struct Elements {
  std::int64_t send = 0;
  std::int64_t receive = 0;
  auto operator<=>(const Elements&) const = default;
};
/// Of all_gather the send side, of reduce_scatter the received side is one shard; of all_to_all
/// both sides have a shard for each member; of a group call they are the sums of the rank's
/// messages.
/// \pre the instance is a communication.
Elements elements_of(const RankPlan& plan, std::size_t instance);

/// Whether it is sends and receives of one group call: an exchange, or a shift.
bool is_group_call(program::CollectiveKind kind);

/// One of a group call's transfers, as one of its ends sees it.
struct Message {
  bool outgoing = false;
  std::int32_t peer = 0;    ///< Its place among the members.
  std::int64_t offset = 0;  ///< In elements, in the send or the receive buffer.
  std::int64_t elements = 0;
  auto operator<=>(const Message&) const = default;
};
/// Those of the rank, in the Program's order, in which both ends of each pair agree. A rank that
/// sends to itself has both ends.
/// \pre the instance is a group call.
std::vector<Message> messages_of(const RankPlan& plan, std::size_t instance);

/// What a rank is doing, for people: "all_reduce layer3.grad (layer 3, micro-batch 0; 33.6 MB) of
/// ranks 0, 2".
std::string describe(const RankPlan& plan, std::size_t instance);

}  // namespace foreshard::replay
