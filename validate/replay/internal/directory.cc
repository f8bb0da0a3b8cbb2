#include "validate/replay/internal/directory.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/index.h"
#include "base/text.h"

#include "strategies/program/ir/group.h"
#include "strategies/program/ir/program.h"

namespace foreshard::replay::internal {
namespace {

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

}  // namespace

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

}  // namespace foreshard::replay::internal
