// Runs a Program without times, the last part of `verify`: it finds operations of members that do
// not match (invariant 17 of verify.h) and deadlocks (invariant 18). One rank of each class stands
// for all of the class. First match() joins the operations of the classes that meet; then run()
// lets every stream go on until all is done or nothing can move. Indices count from 0, -1 is none;
// an empty Program passes.
#include <algorithm>
#include <map>
#include <tuple>

#include "base/index.h"

#include "strategies/program/ir/group.h"
#include "strategies/program/ir/internal/rank_classes.h"
#include "strategies/program/ir/program.h"

namespace foreshard::program::internal {
namespace {

constexpr std::int32_t kNothing = -1;
constexpr int kOperationsMatch = 17;  // numbers of invariants in verify.h
constexpr int kNoDeadlock = 18;

enum class ChannelEnd : std::uint8_t { kCollective, kSend, kReceive };
// Names a sequence of operations of one class: all of one group and tag and, for transfers, of one
// end. The n-th operations in the sequences of all members are the same operation (rule 5 of
// program.h).
struct ChannelKey {
  std::int32_t group;  // Index among the role's groups.
  ChannelEnd end;
  std::string_view tag;
  auto operator<=>(const ChannelKey&) const = default;
};

ChannelEnd end_of(const Communication& communication) {
  if (communication.kind == CollectiveKind::kSend) return ChannelEnd::kSend;
  if (communication.kind == CollectiveKind::kReceive) return ChannelEnd::kReceive;
  return ChannelEnd::kCollective;
}
ChannelEnd other_end(ChannelEnd end) {
  if (end == ChannelEnd::kCollective) return end;
  return end == ChannelEnd::kSend ? ChannelEnd::kReceive : ChannelEnd::kSend;
}

// What the ranks of a role do, whatever their class.
struct RolePlan {
  const Expansion& expansion;
  std::vector<std::vector<std::int32_t>> of_stream;  // Instances per stream; the host is last.
};

struct Channel {
  ChannelKey key;
  std::vector<std::int32_t> operations;  // Instances, in the order of issue.
  std::int32_t rendezvous = kNothing;    // Index; kNothing: all members are of this class.
};

enum class InstanceState : std::uint8_t { kWaiting, kArrived, kDone };

struct ClassState {
  const RankClass* rank_class;
  const RolePlan* plan;
  std::map<ChannelKey, std::int32_t> channel_of_key;
  std::vector<Channel> channels;
  std::vector<std::int32_t> channel_of_instance;  // kNothing: it is not communication.
  std::vector<std::int32_t> turn;                 // Per instance: its position in its channel.
  std::vector<InstanceState> progress;
  std::vector<std::size_t> head;  // Per stream: position of the first instance not done.
};

struct RendezvousMember {
  std::int32_t rank_class;
  std::int32_t channel;
  auto operator<=>(const RendezvousMember&) const = default;
};
// Channels of different classes whose n-th operations are one operation.
struct Rendezvous {
  std::vector<RendezvousMember> members;
  std::vector<std::int32_t> arrived;  // Per operation: how many members have reached it.
};

class DryRun {
 public:
  DryRun(const Program& program, const RankClasses& classes,
         const std::vector<Expansion>& expansions)
      : program_(program), classes_(classes) {
    for (const Expansion& expansion : expansions) plans_.push_back(plan(expansion));
    for (const RankClass& rank_class : classes.classes) states_.push_back(state(rank_class));
  }

  Status match() {
    for (std::size_t c = 0; c < states_.size(); ++c)
      for (std::size_t channel = 0; channel < states_[c].channels.size(); ++channel)
        FORESHARD_TRY(match(c, channel));
    return {};
  }

  Status run() {
    std::vector<std::size_t> work;
    for (std::size_t c = states_.size(); c-- > 0;) work.push_back(c);
    while (!work.empty()) {
      const std::size_t c = work.back();
      work.pop_back();
      while (advance(c, work)) {
      }
    }
    for (std::size_t c = 0; c < states_.size(); ++c)
      for (std::size_t s = 0; s < states_[c].head.size(); ++s)
        if (states_[c].head[s] < states_[c].plan->of_stream[s].size()) return deadlock(c, s);
    return {};
  }

 private:
  std::size_t streams() const { return program_.streams.size(); }

  RolePlan plan(const Expansion& expansion) const {
    RolePlan out{expansion, {}};
    out.of_stream.resize(streams() + 1);
    for (std::size_t i = 0; i < expansion.instances.size(); ++i) {
      const std::int32_t stream = expansion.instances[i].stream;
      out.of_stream[stream < 0 ? streams() : at(stream)].push_back(static_cast<std::int32_t>(i));
    }
    return out;
  }

  const Role& role_of(const ClassState& state) const {
    return program_.roles[at(state.rank_class->role)];
  }
  const Task& task(const ClassState& state, std::int32_t instance) const {
    return task_of(program_, role_of(state), state.plan->expansion.instances[at(instance)]);
  }

  ClassState state(const RankClass& rank_class) const {
    ClassState out{&rank_class, &plans_[at(rank_class.role)], {}, {}, {}, {}, {}, {}};
    const std::size_t count = out.plan->expansion.instances.size();
    out.channel_of_instance.assign(count, kNothing);
    out.turn.assign(count, kNothing);
    out.progress.assign(count, InstanceState::kWaiting);
    out.head.assign(streams() + 1, 0);
    const auto& groups = classes_.groups_of_role[at(rank_class.role)];
    // A task's channel. Nothing iterates over it: the order of pointers differs between runs.
    std::map<const Task*, std::int32_t> known;
    for (std::size_t i = 0; i < count; ++i) {
      const Task& body = task(out, static_cast<std::int32_t>(i));
      const auto* communication = std::get_if<Communication>(&body.body);
      if (!communication) continue;
      const auto [entry, is_new] = known.emplace(&body, kNothing);
      if (is_new) {
        const auto group = std::find_if(groups.begin(), groups.end(),
                                        [&](const Group* g) { return *g == communication->group; });
        // Groups with the same ranks count as one.
        const ChannelKey key{rank_class.same_as[at(group - groups.begin())], end_of(*communication),
                             tag_of(body)};
        entry->second =
            out.channel_of_key.emplace(key, static_cast<std::int32_t>(out.channels.size()))
                .first->second;
        if (at(entry->second) == out.channels.size()) out.channels.push_back({key, {}, kNothing});
      }
      auto& operations = out.channels[at(entry->second)].operations;
      out.channel_of_instance[i] = entry->second;
      out.turn[i] = static_cast<std::int32_t>(operations.size());
      operations.push_back(static_cast<std::int32_t>(i));
    }
    return out;
  }

  std::string who(const ClassState& state) const {
    return "rank " + std::to_string(state.rank_class->representative) + " (role " +
           in_quotes(role_of(state).name) + ")";
  }

  std::string what(const ClassState& state, std::int32_t instance) const {
    const Instance& of = state.plan->expansion.instances[at(instance)];
    const Call& call = role_of(state).calls[at(of.call)];
    return "call " + std::to_string(of.call) + " " +
           in_quotes(program_.blocks[call.block.index()].name) + " task " +
           in_quotes(task(state, instance).name) +
           (call.repeat > 1 ? " of iteration " + std::to_string(of.iteration) : "");
  }

  // Compares `channel` of class `c` with the channels of the classes that take part in its group,
  // and joins them in one rendezvous. For a collective, class `c` is one of those; for a transfer,
  // they are the other end.
  Status match(std::size_t c, std::size_t channel) {
    ClassState& own = states_[c];
    const ChannelKey key = own.channels[channel].key;
    std::vector<RendezvousMember> members;
    if (key.end != ChannelEnd::kCollective)
      members.push_back({static_cast<std::int32_t>(c), static_cast<std::int32_t>(channel)});
    for (const GroupMember& attendee : own.rank_class->attendees[at(key.group)]) {
      const ClassState& other = states_[at(attendee.rank_class)];
      const auto found =
          other.channel_of_key.find(ChannelKey{attendee.group, other_end(key.end), key.tag});
      const std::vector<std::int32_t> none;
      const auto& theirs =
          found == other.channel_of_key.end() ? none : other.channels[at(found->second)].operations;
      // Refuses a class without such a channel, because ours has at least one operation.
      FORESHARD_TRY(compare(own, own.channels[channel], other, theirs));
      members.push_back({attendee.rank_class, found->second});
    }
    if (members.size() < 2) return {};
    std::sort(members.begin(), members.end());
    const auto [entry, is_new] =
        rendezvous_of_.emplace(members, static_cast<std::int32_t>(rendezvous_.size()));
    if (is_new)
      rendezvous_.push_back(
          {members, std::vector<std::int32_t>(own.channels[channel].operations.size(), 0)});
    own.channels[channel].rendezvous = entry->second;
    return {};
  }

  Status compare(const ClassState& own, const Channel& channel, const ClassState& other,
                 const std::vector<std::int32_t>& theirs) const {
    const auto& ours = channel.operations;
    if (&ours == &theirs) return {};
    const bool transfer = channel.key.end != ChannelEnd::kCollective;
    for (std::size_t n = 0; n < std::min(ours.size(), theirs.size()); ++n) {
      const auto& a = std::get<Communication>(task(own, ours[n]).body);
      const auto& b = std::get<Communication>(task(other, theirs[n]).body);
      if ((transfer || a.kind == b.kind) && a.bytes == b.bytes && a.dtype == b.dtype &&
          a.transfers == b.transfers && a.roots == b.roots && a.routing == b.routing)
        continue;
      return violation(kOperationsMatch, who(own) + " " + what(own, ours[n]),
                       text(a) + " is operation " + std::to_string(n) + " with tag " +
                           in_quotes(std::string(channel.key.tag)) + ", but that of " + who(other) +
                           ", " + what(other, theirs[n]) + ", is " + text(b));
    }
    if (ours.size() == theirs.size()) return {};
    return violation(
        kOperationsMatch, who(own),
        "makes " + std::to_string(ours.size()) + " " + end_name(channel.key.end) + " with tag " +
            in_quotes(std::string(channel.key.tag)) + ", but " + who(other) + " makes " +
            std::to_string(theirs.size()) +
            (transfer ? " " + end_name(other_end(channel.key.end)) + " for them" : ""));
  }

  static std::string end_name(ChannelEnd end) {
    if (end == ChannelEnd::kCollective) return "operation(s)";
    return end == ChannelEnd::kSend ? "send(s)" : "receive(s)";
  }
  static std::string text(const Communication& c) {
    std::string text = std::string(name_of(c.kind)) + " of " +
                       std::to_string(c.bytes / Bytes::from_base(1)) + " B " +
                       std::string(foreshard::name_of(c.dtype));
    if (!c.transfers.empty()) text += " in " + std::to_string(c.transfers.size()) + " transfers";
    for (const std::int32_t root : c.roots) text += " from rank " + std::to_string(root);
    return text;
  }

  // One of the instances, on whichever stream, that `instance` still waits for; kNothing: none.
  static std::int32_t blocker(const ClassState& state, std::int32_t instance) {
    const Expansion& expansion = state.plan->expansion;
    const std::int32_t sync = expansion.instances[at(instance)].host_sync;
    if (sync != kNothing && state.progress[at(sync)] != InstanceState::kDone) return sync;
    for (const std::int32_t before : expansion.predecessors(at(instance)))
      if (state.progress[at(before)] != InstanceState::kDone) return before;
    return kNothing;
  }

  // Runs what can run in class `c`, and adds to `work` the classes that this unblocks.
  // \return whether anything was done.
  bool advance(std::size_t c, std::vector<std::size_t>& work) {
    ClassState& state = states_[c];
    bool moved = false;
    for (std::size_t s = 0; s < state.head.size(); ++s) {
      const auto& queue = state.plan->of_stream[s];
      for (; state.head[s] < queue.size(); ++state.head[s], moved = true) {
        const std::int32_t instance = queue[state.head[s]];
        InstanceState& progress = state.progress[at(instance)];
        if (progress == InstanceState::kWaiting && blocker(state, instance) == kNothing)
          start(c, instance, work);
        if (progress != InstanceState::kDone) break;
      }
    }
    return moved;
  }

  void start(std::size_t c, std::int32_t instance, std::vector<std::size_t>& work) {
    ClassState& state = states_[c];
    const std::int32_t channel = state.channel_of_instance[at(instance)];
    const std::int32_t rendezvous =
        channel == kNothing ? kNothing : state.channels[at(channel)].rendezvous;
    if (rendezvous == kNothing) {
      state.progress[at(instance)] = InstanceState::kDone;
      return;
    }
    state.progress[at(instance)] = InstanceState::kArrived;
    Rendezvous& of = rendezvous_[at(rendezvous)];
    const std::size_t turn = at(state.turn[at(instance)]);
    if (at(++of.arrived[turn]) < of.members.size()) return;
    for (const RendezvousMember& member : of.members) {
      ClassState& other = states_[at(member.rank_class)];
      other.progress[at(other.channels[at(member.channel)].operations[turn])] =
          InstanceState::kDone;
      if (at(member.rank_class) != c) work.push_back(at(member.rank_class));
    }
  }

  struct WaitingInstance {
    std::size_t rank_class;
    std::int32_t instance;
    auto operator<=>(const WaitingInstance&) const = default;
  };

  // The head of the stream on which `instance` runs: nothing on it runs before the head is done.
  WaitingInstance head_of_stream_of(std::size_t c, std::int32_t instance) const {
    const ClassState& state = states_[c];
    const std::int32_t stream = state.plan->expansion.instances[at(instance)].stream;
    const std::size_t s = stream < 0 ? streams() : at(stream);
    return {c, state.plan->of_stream[s][state.head[s]]};
  }

  // The head that the head `from` waits for: of another stream, or of another class.
  WaitingInstance next(const WaitingInstance& from) const {
    const ClassState& state = states_[from.rank_class];
    if (const std::int32_t before = blocker(state, from.instance); before != kNothing)
      return head_of_stream_of(from.rank_class, before);
    const std::int32_t channel = state.channel_of_instance[at(from.instance)];
    const Rendezvous& rendezvous = rendezvous_[at(state.channels[at(channel)].rendezvous)];
    const std::size_t turn = at(state.turn[at(from.instance)]);
    for (const RendezvousMember& member : rendezvous.members) {
      const ClassState& other = states_[at(member.rank_class)];
      const std::int32_t theirs = other.channels[at(member.channel)].operations[turn];
      if (other.progress[at(theirs)] == InstanceState::kWaiting)
        return head_of_stream_of(at(member.rank_class), theirs);
    }
    FORESHARD_CHECK(false && "an operation that waits lacks a member");
    return from;
  }

  // Every head waits for another head, so following them leads into a cycle.
  Error deadlock(std::size_t c, std::size_t stream) const {
    std::vector<WaitingInstance> path{
        {c, states_[c].plan->of_stream[stream][states_[c].head[stream]]}};
    auto first = path.end();
    for (;;) {
      const WaitingInstance to = next(path.back());
      first = std::find(path.begin(), path.end(), to);
      if (first != path.end()) break;
      path.push_back(to);
    }
    std::string chain;
    constexpr std::ptrdiff_t kShown = 8;
    for (auto link = first; link != path.end() && link - first < kShown; ++link)
      chain += (link == first ? "" : ", which waits for ") + who(states_[link->rank_class]) + " " +
               what(states_[link->rank_class], link->instance);
    if (path.end() - first > kShown)
      chain += ", ... (" + std::to_string(path.end() - first) + " in all)";
    return violation(kNoDeadlock, "", "deadlock: " + chain + ", which waits for the first");
  }

  const Program& program_;
  const RankClasses& classes_;
  std::vector<RolePlan> plans_;
  std::vector<ClassState> states_;
  std::map<std::vector<RendezvousMember>, std::int32_t> rendezvous_of_;
  std::vector<Rendezvous> rendezvous_;
};

}  // namespace

Status dry_run(const Program& program, const RankClasses& classes,
               const std::vector<Expansion>& expansions) {
  DryRun run(program, classes, expansions);
  FORESHARD_TRY(run.match());
  return run.run();
}

}  // namespace foreshard::program::internal
