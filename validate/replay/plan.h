/// \file
/// One rank's part of a Program, ready to be carried out: its instances (expander), what each
/// communication needs (its communicator, its peer), and the communicators to create.
///
/// **Communicators.** Libraries run the operations of one communicator one after another, in the
/// order in which each member issues them. Operations that the Program leaves unordered must
/// therefore not share a communicator: collectives and exchanges of one group share one per stream;
/// transfers have one per sender, receiver and tag. All ranks number the communicators of the job
/// equally and create their own in ascending order. This cannot deadlock: the lowest communicator
/// that does not exist yet is the next one for each of its members.
///
/// `plan_rank` looks at all ranks, so that all ranks refuse the same Program with the same words.
/// It refuses members that run an operation on different streams, and members that issue the
/// operations of one communicator in different orders (which verify also finds, as a deadlock).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/program/ir/expand.h"
#include "strategies/program/ir/program.h"

namespace foreshard::replay {

struct Communicator {
  std::int64_t number = 0;              ///< Number in the job; ids are exchanged under it.
  std::vector<std::int32_t> members{};  ///< Ranks, ascending.
  std::int32_t me = 0;                  ///< This rank's index in `members`.
  std::string name{};                   ///< Text: "tensor of ranks 0-7 on stream compute".
};

/// What an instance's communication needs in addition to its task.
struct Operation {
  std::int32_t communicator = -1;  ///< Index into RankPlan::communicators; -1: no communication.
  std::int32_t peer = -1;          ///< Transfer: the peer's index in the members; else -1.
  std::int32_t root = -1;          ///< Broadcast: the root's index in the members; else -1.
  std::int64_t ordinal = 0;        ///< Number of the operation with its tag in its group, from 0.
};

struct RankPlan {
  const program::Program* program = nullptr;
  std::int32_t rank = 0;
  std::size_t role = 0;
  program::Expansion expansion{};
  program::MemoryEvents memory{};
  std::vector<Communicator> communicators{};  ///< Ordered by number.
  std::vector<Operation> operations{};        ///< One per instance.

  const program::Task& task(std::size_t instance) const {
    return program::task_of(*program, program->roles[role], expansion.instances[instance]);
  }
};

/// \param program  must outlive the plan.
/// \pre verify(program) finds nothing; rank < program.ranks().
/// \return kInvalidInput if members issue a communicator's operations in different orders (names
///     both ranks and both tasks), kUnsupported if they run an operation on different streams.
Result<RankPlan> plan_rank(const program::Program& program, std::int32_t rank);

/// How many elements of its dtype a rank sends and receives in a communication. Sizes that are no
/// whole number of elements or equal shards are rounded up.
struct Elements {
  std::int64_t send = 0;
  std::int64_t receive = 0;
  auto operator<=>(const Elements&) const = default;
};
/// The elements of a communication. The send side of all_gather and the receive side of
/// reduce_scatter are one shard; both sides of all_to_all have a shard for each member; both sides
/// of a group call are sums over the rank's messages.
/// \pre the instance is a communication.
Elements elements_of(const RankPlan& plan, std::size_t instance);

/// Whether the kind is carried out as sends and receives in one group call: an exchange or a shift.
bool is_group_call(program::CollectiveKind kind);

/// A transfer of a group call, seen from one of its ends.
struct Message {
  bool outgoing = false;
  std::int32_t peer = 0;    ///< The peer's index in the members.
  std::int64_t offset = 0;  ///< Position in the send or receive buffer, in elements.
  std::int64_t elements = 0;
  auto operator<=>(const Message&) const = default;
};
/// The messages of the rank, in the Program's order, so that both ends of each pair agree. A rank
/// that sends to itself has both ends.
/// \pre the instance is a group call.
std::vector<Message> messages_of(const RankPlan& plan, std::size_t instance);

/// The instance in words: "all_reduce layer3.grad (layer 3, micro-batch 0; 33.6 MB) of ranks 0, 2".
std::string describe(const RankPlan& plan, std::size_t instance);

}  // namespace foreshard::replay
