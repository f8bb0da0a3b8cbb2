#include "validate/replay/plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/index.h"
#include "base/quantity.h"
#include "base/result.h"
#include "base/text.h"

#include "strategies/program/ir/expand.h"
#include "strategies/program/ir/group.h"
#include "strategies/program/ir/program.h"

namespace foreshard::replay {
namespace {

// All communicators of a job. Every rank derives the same numbers from the Program: communicators
// are ordered by role, then first use, then rank.

class Directory {
 public:
  struct Entry {
    std::vector<std::int32_t> members{};  ///< Ascending.
    std::string name{};
  };

  /// \param program, expander  must outlive it.
  /// \pre verify(program) finds nothing.
  /// \return errors of plan_rank.
  static Result<Directory> of(const program::Program& program, const program::Expander& expander);

  const std::vector<Entry>& entries() const { return entries_; }

  /// Number of the set of ranks on which a collective of `rank` with this group runs. Operations
  /// are counted per set.
  /// \pre the Program uses the group in a collective, and `rank` takes part.
  std::int32_t set_of(const program::Group& group, std::int32_t rank) const;
  /// Number of a communicator: an index into entries().
  /// \pre the Program runs such an operation.
  std::int64_t collective(std::int32_t set, std::int32_t stream) const;
  std::int64_t transfer(std::int32_t from, std::int32_t to, std::string_view tag) const;

 private:
  using Groups = std::map<program::Group, std::vector<std::int32_t>>;

  Directory() = default;
  void learn(const program::Program& program, const program::Group& group);
  void enter_collective(const program::Program& program, const program::Role& role,
                        const program::Task& task);
  Status enter_transfer(const program::Program& program, const program::Role& role,
                        const program::Task& task);
  Status compare_orders(const program::Program& program, const program::Expander& expander) const;

  std::vector<Entry> entries_;
  Groups sets_of_group_;  // group -> rank -> set; -1: the rank takes no part
  std::map<std::vector<std::int32_t>, std::int32_t> sets_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> collectives_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::string>, std::int64_t> transfers_;
};

using program::AxisGroup;
using program::CollectiveKind;
using program::Communication;
using program::Expander;
using program::Expansion;
using program::Group;
using program::Program;
using program::Role;
using program::Task;

bool is_transfer(const Communication& communication) {
  return communication.kind == CollectiveKind::kSend ||
         communication.kind == CollectiveKind::kReceive;
}

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text) + "'";
}

// The communications of the blocks that a role calls, each once.
std::vector<const Task*> communications_of(const Program& program, const Role& role) {
  std::set<std::size_t> called;
  for (const program::Call& call : role.calls) called.insert(call.block.index());
  std::vector<const Task*> found;
  for (const std::size_t block : called)
    for (const Task& task : program.blocks[block].tasks)
      if (std::holds_alternative<Communication>(task.body)) found.push_back(&task);
  return found;
}

std::string axes_of(const Program& program, const Communication& communication) {
  const auto* axes = std::get_if<AxisGroup>(&communication.group);
  if (!axes) return std::string(name_of(communication.purpose));
  std::vector<std::string> names;
  for (const std::int32_t axis : axes->axes) names.push_back(program.mesh[at(axis)].name);
  return join(names, "+");
}

// An operation of a rank on one set of ranks: its stream, its tag and its number among the
// operations with that tag. A library sees the operations of a stream in this order.
struct Step {
  std::int32_t stream = 0;
  std::string_view tag{};
  std::int64_t ordinal = 0;
  const Task* task = nullptr;

  bool same(const Step& other) const {
    return stream == other.stream && tag == other.tag && ordinal == other.ordinal;
  }
};

std::string text_of(const Program& program, const Step& step) {
  return in_quotes(step.task->name) + " (operation " + std::to_string(step.ordinal) + " with tag " +
         in_quotes(step.tag) + ") on stream " + in_quotes(program.streams[at(step.stream)].name);
}

std::vector<Step> steps_on(const Program& program, const Role& role, const Expansion& expansion,
                           const std::vector<const Group*>& groups) {
  std::vector<Step> steps;
  std::map<const Task*, bool> wanted;  // order never used
  std::map<std::string_view, std::int64_t> count;
  for (const program::Instance& instance : expansion.instances) {
    const Task& task = task_of(program, role, instance);
    const auto* communication = std::get_if<Communication>(&task.body);
    if (!communication || is_transfer(*communication)) continue;
    const auto [entry, is_new] = wanted.emplace(&task, false);
    if (is_new)
      entry->second = std::ranges::any_of(
          groups, [&](const Group* group) { return *group == communication->group; });
    if (!entry->second) continue;
    steps.push_back({instance.stream, tag_of(task), count[tag_of(task)]++, &task});
  }
  std::ranges::stable_sort(steps, {}, &Step::stream);
  return steps;
}

Error disagreement(const Program& program, std::int32_t a, const std::vector<Step>& first,
                   std::int32_t b, const std::vector<Step>& second) {
  std::size_t i = 0;
  while (i < std::min(first.size(), second.size()) && first[i].same(second[i])) ++i;
  const auto who = [](std::int32_t rank) { return "rank " + std::to_string(rank); };
  if (i == first.size() || i == second.size())
    return {Error::Code::kInvalidInput,
            who(a) + " and " + who(b) + " do not make the same operations together"};
  const auto elsewhere = std::ranges::find_if(second, [&](const Step& step) {
    return step.tag == first[i].tag && step.ordinal == first[i].ordinal;
  });
  if (elsewhere != second.end() && elsewhere->stream != first[i].stream)
    return {Error::Code::kUnsupported,
            who(a) + " runs " + text_of(program, first[i]) + ", but " + who(b) + " runs " +
                text_of(program, *elsewhere) +
                ": a replay needs all members of an operation on one stream; give it the same "
                "stream in all roles"};
  return {Error::Code::kInvalidInput,
          who(a) + " issues " + text_of(program, first[i]) + " where " + who(b) + " issues " +
              text_of(program, second[i]) +
              ": the communication library would wait forever; issue them in one order"};
}

Result<Directory> Directory::of(const Program& program, const Expander& expander) {
  Directory out;
  for (const Role& role : program.roles) {
    for (const Task* task : communications_of(program, role)) {
      if (!is_transfer(std::get<Communication>(task->body)))
        out.enter_collective(program, role, *task);
      else
        FORESHARD_TRY(out.enter_transfer(program, role, *task));
    }
  }
  FORESHARD_TRY(out.compare_orders(program, expander));
  return out;
}

std::int32_t Directory::set_of(const Group& group, std::int32_t rank) const {
  const auto found = sets_of_group_.find(group);
  FORESHARD_CHECK(found != sets_of_group_.end());
  return found->second[at(rank)];
}

std::int64_t Directory::collective(std::int32_t set, std::int32_t stream) const {
  const auto found = collectives_.find({set, stream});
  FORESHARD_CHECK(found != collectives_.end());
  return found->second;
}

std::int64_t Directory::transfer(std::int32_t from, std::int32_t to, std::string_view tag) const {
  const auto found = transfers_.find({from, to, std::string(tag)});
  FORESHARD_CHECK(found != transfers_.end());
  return found->second;
}

void Directory::learn(const Program& program, const Group& group) {
  const auto [entry, is_new] = sets_of_group_.try_emplace(group);
  if (!is_new) return;
  std::vector<std::int32_t> labels = labels_of(program, group);
  std::map<std::int32_t, std::int32_t> set_of_label;
  for (std::size_t rank = 0; rank < labels.size(); ++rank) {
    if (labels[rank] < 0) continue;
    const auto [known, unseen] = set_of_label.try_emplace(labels[rank]);
    if (unseen) {
      auto members = members_of(program, group, static_cast<std::int32_t>(rank));
      known->second =
          sets_.emplace(std::move(members), static_cast<std::int32_t>(sets_.size())).first->second;
    }
    labels[rank] = known->second;
  }
  entry->second = std::move(labels);
}

void Directory::enter_collective(const Program& program, const Role& role, const Task& task) {
  const auto& communication = std::get<Communication>(task.body);
  learn(program, communication.group);
  const auto& sets = sets_of_group_.at(communication.group);
  for (const std::int32_t rank : role.ranks) {
    const std::int32_t set = sets[at(rank)];
    FORESHARD_CHECK(set >= 0);
    const auto number = static_cast<std::int64_t>(entries_.size());
    if (!collectives_.emplace(std::pair{set, task.stream.value()}, number).second) continue;
    auto members = members_of(program, communication.group, rank);
    std::string name = axes_of(program, communication) + " of ranks " +
                       program::write_ranges(members) + " on stream " +
                       program.streams[task.stream.index()].name;
    entries_.push_back({std::move(members), std::move(name)});
  }
}

Status Directory::enter_transfer(const Program& program, const Role& role, const Task& task) {
  const auto& communication = std::get<Communication>(task.body);
  for (const Task* other : communications_of(program, role)) {
    const auto& theirs = std::get<Communication>(other->body);
    if (theirs.kind == communication.kind && theirs.group == communication.group &&
        tag_of(*other) == tag_of(task) && other->stream != task.stream)
      return Error{Error::Code::kUnsupported,
                   "role " + in_quotes(role.name) + " runs " + std::string(name_of(theirs.kind)) +
                       " with tag " + in_quotes(tag_of(task)) + " to one peer on two streams, " +
                       in_quotes(program.streams[task.stream.index()].name) + " and " +
                       in_quotes(program.streams[other->stream.index()].name) +
                       ": a replay needs one; give the others a tag of their own"};
  }
  for (const std::int32_t rank : role.ranks) {
    const auto peer = peer_of(program, communication.group, rank);
    FORESHARD_CHECK(peer.has_value());
    const bool sends = communication.kind == CollectiveKind::kSend;
    const std::int32_t from = sends ? rank : *peer;
    const std::int32_t to = sends ? *peer : rank;
    const auto number = static_cast<std::int64_t>(entries_.size());
    if (!transfers_.emplace(std::tuple{from, to, tag_of(task)}, number).second) continue;
    entries_.push_back(
        {{std::min(from, to), std::max(from, to)},
         tag_of(task) + " from rank " + std::to_string(from) + " to rank " + std::to_string(to)});
  }
  return {};
}

// Checks that all members of a set of ranks issue the same operations on it. Ranks of one role do,
// unless different groups of theirs have the same members; so sequences are computed per role and
// per list of groups that coincide.
Status Directory::compare_orders(const Program& program, const Expander& expander) const {
  struct First {
    std::int32_t rank;
    const std::vector<Step>* steps;
  };
  std::map<std::int32_t, First> of_set;
  std::map<std::pair<std::size_t, std::vector<const Group*>>, std::vector<Step>> known;
  for (std::size_t r = 0; r < program.roles.size(); ++r) {
    const Role& role = program.roles[r];
    std::vector<const Group*> groups;
    for (const Task* task : communications_of(program, role)) {
      const auto& communication = std::get<Communication>(task->body);
      if (is_transfer(communication)) continue;
      if (std::ranges::none_of(groups, [&](const Group* g) { return *g == communication.group; }))
        groups.push_back(&communication.group);
    }
    if (groups.empty()) continue;
    const Expansion expansion = expander.expand(r);
    for (const std::int32_t rank : role.ranks) {
      std::map<std::int32_t, std::vector<const Group*>> groups_of_set;
      for (const Group* group : groups) groups_of_set[set_of(*group, rank)].push_back(group);
      for (const auto& [set, coinciding] : groups_of_set) {
        const auto [entry, is_new] = known.try_emplace({r, coinciding});
        if (is_new) entry->second = steps_on(program, role, expansion, coinciding);
        const auto [first, unseen] = of_set.try_emplace(set, First{rank, &entry->second});
        if (unseen || first->second.steps == &entry->second) continue;
        const auto& theirs = *first->second.steps;
        if (!std::ranges::equal(theirs, entry->second,
                                [](const Step& a, const Step& b) { return a.same(b); }))
          return disagreement(program, first->second.rank, theirs, rank, entry->second);
      }
    }
  }
  return {};
}

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
  Operations(RankPlan& plan, const Directory& directory) : plan_(plan), directory_(directory) {}

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
  const Directory& directory_;
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
  FORESHARD_ASSIGN(const auto directory, Directory::of(program, expander));

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
