#include "validate/replay/plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/index.h"
#include "base/quantity.h"

#include "strategies/program/ir/group.h"
#include "strategies/program/ir/program.h"
#include "validate/replay/internal/directory.h"

namespace foreshard::replay {
namespace {

using program::CollectiveKind;
using program::Communication;
using program::Task;

std::size_t role_of(const program::Program& program, std::int32_t rank) {
  for (std::size_t role = 0; role < program.roles.size(); ++role)
    if (std::ranges::binary_search(program.roles[role].ranks, rank)) return role;
  FORESHARD_CHECK(false && "every rank has a role");
  return 0;
}

std::int32_t place_of(const std::vector<std::int32_t>& members, std::int32_t rank) {
  const auto found = std::ranges::lower_bound(members, rank);
  FORESHARD_CHECK(found != members.end() && *found == rank);
  return static_cast<std::int32_t>(found - members.begin());
}

// The root of a broadcast: the root in `roots` that is a member, else the lowest member.
std::int32_t root_of(const Communication& broadcast, const std::vector<std::int32_t>& members) {
  for (const std::int32_t root : broadcast.roots)
    if (std::ranges::binary_search(members, root)) return place_of(members, root);
  return 0;
}

// Fills in the plan's communicators and operations.
class Operations {
 public:
  Operations(RankPlan& plan, const internal::Directory& directory)
      : plan_(plan), directory_(directory) {}

  void list() {
    for (std::size_t i = 0; i < plan_.expansion.instances.size(); ++i) {
      const Task& task = plan_.task(i);
      const auto* communication = std::get_if<Communication>(&task.body);
      plan_.operations.push_back(communication ? operation(task, *communication) : Operation{});
    }
    // Renumbered so that the plan's communicators ascend.
    std::vector<std::int32_t> place;
    for (auto& [number, index] : index_of_) {
      const auto& entry = directory_.entries()[at(number)];
      place.resize(std::max(place.size(), at(index) + 1));
      place[at(index)] = static_cast<std::int32_t>(plan_.communicators.size());
      plan_.communicators.push_back({.number = number,
                                     .members = entry.members,
                                     .me = place_of(entry.members, plan_.rank),
                                     .name = entry.name});
    }
    for (Operation& of : plan_.operations)
      if (of.communicator >= 0) of.communicator = place[at(of.communicator)];
  }

 private:
  Operation operation(const Task& task, const Communication& communication) {
    const auto known = of_task_.find(&task);
    if (known != of_task_.end()) {
      Operation again = known->second.first;
      again.ordinal = (*known->second.second)++;
      return again;
    }
    const bool sends = communication.kind == CollectiveKind::kSend;
    const std::string_view tag = program::tag_of(task);
    Operation out;
    std::int64_t number = 0;
    std::int64_t* count = nullptr;
    if (sends || communication.kind == CollectiveKind::kReceive) {
      const std::int32_t peer = *peer_of(*plan_.program, communication.group, plan_.rank);
      number = sends ? directory_.transfer(plan_.rank, peer, tag)
                     : directory_.transfer(peer, plan_.rank, tag);
      out.peer = peer > plan_.rank ? 1 : 0;
      count = &transfers_[number];
    } else {
      const std::int32_t set = directory_.set_of(communication.group, plan_.rank);
      number = directory_.collective(set, task.stream.value());
      if (communication.kind == CollectiveKind::kBroadcast)
        out.root = root_of(communication, directory_.entries()[at(number)].members);
      count = &collectives_[{set, tag}];
    }
    out.communicator =
        index_of_.emplace(number, static_cast<std::int32_t>(index_of_.size())).first->second;
    of_task_.emplace(&task, std::pair{out, count});
    out.ordinal = (*count)++;
    return out;
  }

  RankPlan& plan_;
  const internal::Directory& directory_;
  std::map<std::int64_t, std::int32_t> index_of_;  // communicator's number -> index
  std::map<const Task*, std::pair<Operation, std::int64_t*>> of_task_;  // order never used
  std::map<std::int64_t, std::int64_t> transfers_;  // number -> operations so far
  std::map<std::pair<std::int32_t, std::string_view>, std::int64_t> collectives_;
};

// Whether `wanted` holds for the kind of some communication.
template <class Wanted>
bool communicates(const program::Program& program, Wanted wanted) {
  return std::ranges::any_of(program.blocks, [&](const program::Block& block) {
    return std::ranges::any_of(block.tasks, [&](const Task& task) {
      const auto* what = std::get_if<Communication>(&task.body);
      return what != nullptr && wanted(what->kind);
    });
  });
}

bool is_token_exchange(CollectiveKind kind) {
  return kind == CollectiveKind::kTokenExchange;
}

std::int64_t elements_in(Bytes bytes, DType dtype, std::int64_t parts) {
  return static_cast<std::int64_t>(
      std::ceil(bytes / (static_cast<double>(parts) * size_of(dtype))));
}

}  // namespace

Result<RankPlan> plan_rank(const program::Program& program, std::int32_t rank) {
  FORESHARD_CHECK(rank >= 0 && rank < program.ranks());
  if (communicates(program, program::is_with_host))
    return Error{Error::Code::kUnsupported,
                 "a replay has the operations of NCCL and MPI, and no copies to and from the host; "
                 "leave strategy.offload out"};
  if (communicates(program, is_token_exchange))
    return Error{Error::Code::kUnsupported,
                 "a replay has the operations of NCCL and MPI, and none that sends a token once to "
                 "each node (token_exchange); set strategy.token_dispatcher: all-to-all"};
  const program::Expander expander(program);
  FORESHARD_ASSIGN(const auto directory, internal::Directory::of(program, expander));

  RankPlan plan;
  plan.program = &program;
  plan.rank = rank;
  plan.role = role_of(program, rank);
  plan.expansion = expander.expand(plan.role);
  plan.memory = expander.memory_events(plan.role, plan.expansion);
  plan.operations.reserve(plan.expansion.instances.size());
  Operations(plan, directory).list();
  return plan;
}

Elements elements_of(const RankPlan& plan, std::size_t instance) {
  const auto& communication = std::get<Communication>(plan.task(instance).body);
  const auto& communicator = plan.communicators[at(plan.operations[instance].communicator)];
  const auto members = static_cast<std::int64_t>(communicator.members.size());
  const auto whole = [&] { return elements_in(communication.bytes, communication.dtype, 1); };
  const auto shard = [&] { return elements_in(communication.bytes, communication.dtype, members); };
  switch (communication.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kBroadcast:
      return {.send = whole(), .receive = whole()};
    case CollectiveKind::kAllGather:
      return {.send = shard(), .receive = members * shard()};
    case CollectiveKind::kReduceScatter:
      return {.send = members * shard(), .receive = shard()};
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kTokenExchange:
      return {.send = members * shard(), .receive = members * shard()};
    case CollectiveKind::kSend:
      return {.send = whole(), .receive = 0};
    case CollectiveKind::kReceive:
      return {.send = 0, .receive = whole()};
    case CollectiveKind::kToHost:  // refused when the rank was planned
    case CollectiveKind::kFromHost:
    case CollectiveKind::kOnHost:
      return {};
    case CollectiveKind::kExchange:
    case CollectiveKind::kShift: {
      Elements sum;
      for (const Message& message : messages_of(plan, instance))
        (message.outgoing ? sum.send : sum.receive) += message.elements;
      return sum;
    }
  }
  FORESHARD_CHECK(false && "every kind has its elements");
  return {};
}

bool is_group_call(CollectiveKind kind) {
  return kind == CollectiveKind::kExchange || kind == CollectiveKind::kShift;
}

std::vector<Message> messages_of(const RankPlan& plan, std::size_t instance) {
  const auto& communication = std::get<Communication>(plan.task(instance).body);
  const auto& communicator = plan.communicators[at(plan.operations[instance].communicator)];
  const auto& members = communicator.members;
  if (communication.kind == CollectiveKind::kShift) {
    const auto count = static_cast<std::int32_t>(members.size());
    const std::int64_t elements = elements_in(communication.bytes, communication.dtype, 1);
    const auto to_or_from = [&](bool outgoing, std::int32_t places) {
      return Message{
          .outgoing = outgoing, .peer = (communicator.me + places) % count, .elements = elements};
    };
    return {to_or_from(true, 1), to_or_from(false, count - 1)};
  }
  std::vector<Message> messages;
  Elements so_far;
  for (const program::Transfer& transfer : communication.transfers) {
    if (transfer.from != plan.rank && transfer.to != plan.rank) continue;
    const std::int64_t elements = elements_in(transfer.bytes, communication.dtype, 1);
    // A rank that sends to itself has both ends.
    if (transfer.from == plan.rank) {
      messages.push_back({.outgoing = true,
                          .peer = place_of(members, transfer.to),
                          .offset = so_far.send,
                          .elements = elements});
      so_far.send += elements;
    }
    if (transfer.to == plan.rank) {
      messages.push_back({.outgoing = false,
                          .peer = place_of(members, transfer.from),
                          .offset = so_far.receive,
                          .elements = elements});
      so_far.receive += elements;
    }
  }
  return messages;
}

std::string describe(const RankPlan& plan, std::size_t instance) {
  const program::Instance& of = plan.expansion.instances[instance];
  const Task& task = plan.task(instance);
  const program::Call& call = plan.program->roles[plan.role].calls[at(of.call)];
  std::string where = "(layer " + std::to_string(call.layer(of.iteration)) + ", micro-batch " +
                      std::to_string(call.micro_batch) +
                      (call.chunk > 0 ? ", chunk " + std::to_string(call.chunk) : "");
  if (const auto* kernel = std::get_if<Kernel>(&task.body))
    return "kernel " + task.name + " " + where + "; " + foreshard::describe(*kernel) + ")";
  const auto* communication = std::get_if<Communication>(&task.body);
  if (!communication)
    return (std::holds_alternative<program::Sync>(task.body) ? "sync " : "host work ") + task.name +
           " " + where + ")";

  const Operation& operation = plan.operations[instance];
  const auto& members = plan.communicators[at(operation.communicator)].members;
  where += "; " + format(communication->bytes) + ")";
  std::string text = std::string(name_of(communication->kind)) + " " + task.name + " " + where;
  if (operation.peer >= 0)
    return text + (communication->kind == CollectiveKind::kSend ? " to rank " : " from rank ") +
           std::to_string(members[at(operation.peer)]);
  if (operation.root >= 0) text += " from rank " + std::to_string(members[at(operation.root)]);
  return text + " of ranks " + program::write_ranges(members);
}

}  // namespace foreshard::replay
