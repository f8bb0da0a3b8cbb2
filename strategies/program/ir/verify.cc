// The checks of a program's invariants, which verify.h numbers.
#include "strategies/program/ir/verify.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "strategies/program/ir/expand.h"
#include "strategies/program/ir/group.h"
#include "strategies/program/ir/internal/rank_classes.h"

namespace foreshard::program {
namespace {

using internal::in_quotes;
using internal::place_of;
using internal::violation;

constexpr std::int64_t kMaxRanks = std::int64_t{1} << 24;
constexpr std::size_t kMaxAxes = 16;
constexpr std::size_t kMaxStreams = 256;
constexpr std::int64_t kMaxLayer = std::int64_t{1} << 30;
// Most instances, of all rank classes together, on which invariants 17 and 18 are checked.
constexpr std::int64_t kMaxRehearsed = std::int64_t{1} << 27;

std::string text(std::int64_t n) {
  return std::to_string(n);
}

bool is_size(double value) {
  return std::isfinite(value) && value >= 0;
}

template <class T>
bool within(std::int64_t index, const std::vector<T>& table) {
  return index >= 0 && index < static_cast<std::int64_t>(table.size());
}

// Well-formed UTF-8 without control characters: these names go into JSON and onto terminals.
bool is_printable(const std::string& name) {
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto lead = static_cast<unsigned char>(name[i]);
    if (lead < 0x20 || lead == 0x7f) return false;
    const std::size_t more = lead < 0x80 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || i + more >= name.size()) return false;
    for (std::size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(name[i + k]);
      if ((next & 0xc0) != 0x80) return false;
      // Overlong forms, surrogates and code points past U+10FFFF.
      if (k == 1 && ((lead == 0xe0 && next < 0xa0) || (lead == 0xed && next > 0x9f) ||
                     (lead == 0xf0 && next < 0x90) || (lead == 0xf4 && next > 0x8f)))
        return false;
    }
    i += more;
  }
  return true;
}

Status mesh_fault(const Program& program) {
  if (program.mesh.empty() || program.mesh.size() > kMaxAxes)
    return violation(1, "mesh", "has " + text(std::ssize(program.mesh)) + " axes");
  std::int64_t ranks = 1;
  std::set<std::string> names;
  for (const MeshAxis& axis : program.mesh) {
    if (axis.size < 1)
      return violation(1, "mesh axis " + in_quotes(axis.name), "has size " + text(axis.size));
    if (!is_printable(axis.name)) return violation(3, "mesh", "a name is not printable UTF-8");
    if (!names.insert(axis.name).second)
      return violation(1, "mesh", "two axes are called " + in_quotes(axis.name));
    if (axis.size > kMaxRanks || (ranks *= axis.size) > kMaxRanks)
      return violation(1, "mesh", "has more than " + text(kMaxRanks) + " ranks");
  }
  return {};
}

Status device_fault(const Program& program) {
  const auto& devices = program.device_of_rank;
  if (devices.empty()) return {};
  if (std::ssize(devices) != program.ranks())
    return violation(
        2, "device_of_rank",
        "names " + text(std::ssize(devices)) + " devices for " + text(program.ranks()) + " ranks");
  auto sorted = devices;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front() < 0)
    return violation(2, "device_of_rank", "names device " + text(sorted.front()));
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    return violation(2, "device_of_rank", "names device " + text(*twice) + " twice");
  return {};
}

template <class T>
Status names_fault(const std::string& what, const std::vector<T>& named) {
  if (named.empty()) return violation(3, what, "there are none");
  std::set<std::string> names;
  for (const T& item : named) {
    if (item.name.empty()) return violation(3, what, "a name is empty");
    if (!is_printable(item.name)) return violation(3, what, "a name is not printable UTF-8");
    if (!names.insert(item.name).second)
      return violation(3, what, "two are called " + in_quotes(item.name));
  }
  return {};
}

Status table_fault(const Program& program) {
  if (!is_printable(program.name) || !is_printable(program.totals.peak_dtype))
    return violation(3, "name", "is not printable UTF-8");
  if (program.streams.size() > kMaxStreams)
    return violation(3, "streams", "there are more than " + text(kMaxStreams));
  FORESHARD_TRY(names_fault("streams", program.streams));
  FORESHARD_TRY(names_fault("blocks", program.blocks));
  FORESHARD_TRY(names_fault("roles", program.roles));
  if (!is_size(program.launch_time.in_base()))
    return violation(4, "launch_time", "is not a finite time of 0 or more");
  if (const auto& of_rank = program.launch_time_of_rank; !of_rank.empty()) {
    if (static_cast<std::int64_t>(of_rank.size()) != program.ranks())
      return violation(4, "launch_time_of_rank",
                       "has " + text(static_cast<std::int64_t>(of_rank.size())) + " times for " +
                           text(program.ranks()) + " ranks");
    for (const Seconds time : of_rank)
      if (!is_size(time.in_base()))
        return violation(4, "launch_time_of_rank", "a time is not finite or below 0");
    if (std::ranges::max(of_rank) != program.launch_time)
      return violation(4, "launch_time", "is not the longest of launch_time_of_rank");
  }
  const Totals& totals = program.totals;
  if (!is_size(totals.samples) || !is_size(totals.tokens) || !is_size(totals.model_flops.in_base()))
    return violation(4, "totals", "are not finite numbers of 0 or more");
  return {};
}

Status rank_fault(const Program& program) {
  std::vector<const Role*> role_of(static_cast<std::size_t>(program.ranks()), nullptr);
  for (const Role& role : program.roles) {
    const std::string place = "role " + in_quotes(role.name);
    if (role.ranks.empty()) return violation(5, place, "has no ranks");
    std::int32_t last = -1;
    for (const std::int32_t rank : role.ranks) {
      if (!within(rank, role_of))
        return violation(5, place, "rank " + text(rank) + " is outside the mesh");
      if (rank <= last) return violation(5, place, "ranks are not ascending at " + text(rank));
      const Role*& holder = role_of[static_cast<std::size_t>(rank)];
      if (holder)
        return violation(
            5, place, "rank " + text(rank) + " has role " + in_quotes(holder->name) + " already");
      holder = &role;
      last = rank;
    }
    for (const StaticMemory& memory : role.memory)
      if (!is_size(memory.bytes.in_base()))
        return violation(8, place, "static memory is not a finite size of 0 or more");
  }
  const auto without = std::find(role_of.begin(), role_of.end(), nullptr);
  if (without != role_of.end())
    return violation(5, "roles", "rank " + text(without - role_of.begin()) + " has none");
  return {};
}

// The fault of a group; empty if there is none.
std::string group_why(const Program& program, const AxisGroup& group) {
  if (group.axes.empty()) return "names no mesh axis";
  for (std::size_t i = 0; i < group.axes.size(); ++i) {
    if (!within(group.axes[i], program.mesh))
      return "names mesh axis " + text(group.axes[i]) + " of " + text(std::ssize(program.mesh));
    if (i > 0 && group.axes[i] <= group.axes[i - 1]) return "names axes that are not ascending";
  }
  if (group.coordinates.empty()) return {};
  if (group.axes.size() != 1) return "lists coordinates of more than one axis";
  const MeshAxis& axis = program.mesh[static_cast<std::size_t>(group.axes[0])];
  std::int64_t last = -1;
  for (const std::int64_t c : group.coordinates) {
    if (c < 0 || c >= axis.size)
      return "lists coordinate " + text(c) + " of axis " + in_quotes(axis.name) + " of size " +
             text(axis.size);
    if (c <= last) return "lists coordinates that are not ascending";
    last = c;
  }
  return {};
}
std::string group_why(const Program& program, const AxisPeer& peer) {
  if (!within(peer.axis, program.mesh))
    return "names mesh axis " + text(peer.axis) + " of " + text(std::ssize(program.mesh));
  const MeshAxis& axis = program.mesh[static_cast<std::size_t>(peer.axis)];
  if (peer.coordinate >= 0 && peer.coordinate < axis.size) return {};
  return "names coordinate " + text(peer.coordinate) + " of axis " + in_quotes(axis.name) +
         " of size " + text(axis.size);
}
std::string group_why(const Program& program, const RankGroups& groups) {
  std::vector<bool> listed(static_cast<std::size_t>(program.ranks()), false);
  for (const auto& list : groups.groups) {
    if (list.empty()) return "has an empty list of ranks";
    std::int32_t last = -1;
    for (const std::int32_t rank : list) {
      if (rank < 0 || rank >= program.ranks()) return "lists rank " + text(rank);
      if (rank <= last) return "lists ranks that are not ascending";
      if (listed[static_cast<std::size_t>(rank)])
        return "lists rank " + text(rank) + " in two groups";
      listed[static_cast<std::size_t>(rank)] = true;
      last = rank;
    }
  }
  return {};
}

bool has_sizes(const Gemm& gemm) {
  return gemm.batch >= 1 && gemm.m >= 1 && gemm.n >= 1 && gemm.k >= 1;
}
bool has_sizes(const Attention& a) {
  return a.batch >= 1 && a.query_heads >= 1 && a.kv_heads >= 1 && a.query_length >= 1 &&
         a.key_length >= 1 && a.head_dim >= 1 && a.value_dim >= 0 && a.window >= 0 && a.sample >= 0;
}
bool has_sizes(const Pass& pass) {
  constexpr std::int32_t kMostStates = 64;
  const bool has_states = pass.kind == PassKind::kAdam && pass.state_bytes <= kMostStates;
  return pass.rows >= 0 && pass.columns >= 1 && pass.launches >= 1 &&
         (pass.state_bytes == 0 || (pass.state_bytes > 0 && has_states));
}

// Checks the body of one task: invariants 3 (names), 4, 7, 8, 12 to 14 and 19 to 22.
class BodyCheck {
 public:
  BodyCheck(const Program& program, const Task& task, std::string place)
      : program_(program), task_(task), place_(std::move(place)) {}

  Status operator()(const Kernel& kernel) const {
    if (!std::visit([](const auto& k) { return has_sizes(k); }, kernel))
      return violation(8, place_, "a size of the kernel is below 1");
    return stream_fault(true);
  }
  Status operator()(const Communication& communication) const {
    const auto why = [this](const auto& group) { return group_why(program_, group); };
    const bool with_host = is_with_host(communication.kind);
    const auto* axes = std::get_if<AxisGroup>(&communication.group);
    const bool alone = axes != nullptr && axes->axes.empty() && axes->coordinates.empty();
    if (with_host && !alone)
      return violation(22, place_, "an operation with the host is of one rank: it names no axis");
    if (const std::string fault = std::visit(why, communication.group);
        !with_host && !fault.empty())
      return violation(std::holds_alternative<RankGroups>(communication.group) ? 13 : 12, place_,
                       "the group " + fault);
    const bool transfer = communication.kind == CollectiveKind::kSend ||
                          communication.kind == CollectiveKind::kReceive;
    if (transfer != std::holds_alternative<AxisPeer>(communication.group))
      return violation(14, place_,
                       transfer ? "a transfer must name its peer (axis and coordinate)"
                                : "only send and receive may name a peer");
    if (!is_size(communication.bytes.in_base())) return size_fault();
    FORESHARD_TRY(transfers_fault(communication));
    FORESHARD_TRY(roots_fault(communication));
    FORESHARD_TRY(routing_fault(communication));
    if (!is_printable(communication.tag))
      return violation(3, place_, "the tag is not printable UTF-8");
    return stream_fault(true);
  }
  Status operator()(const Allocate& allocate) const {
    if (!is_size(allocate.bytes.in_base())) return size_fault();
    return buffer_fault(allocate.buffer);
  }
  Status operator()(const Free& free) const { return buffer_fault(free.buffer); }
  Status operator()(const Sync&) const { return stream_fault(false); }
  Status operator()(const HostWork& work) const {
    if (!is_size(work.time.in_base()))
      return violation(4, place_, "the time is not a finite time of 0 or more");
    return stream_fault(false);
  }

 private:
  Status transfers_fault(const Communication& communication) const {
    const auto& transfers = communication.transfers;
    if (communication.kind != CollectiveKind::kExchange) {
      if (transfers.empty()) return {};
      return violation(19, place_, "only an exchange lists transfers");
    }
    const auto label = labels_of(program_, communication.group);
    std::set<std::int32_t> idle(label.begin(), label.end());
    idle.erase(-1);
    Bytes sum;
    for (const Transfer& transfer : transfers) {
      const std::string which =
          "the transfer from rank " + text(transfer.from) + " to " + text(transfer.to);
      if (!within(transfer.from, label) || !within(transfer.to, label))
        return violation(19, place_, which + " names a rank outside the mesh");
      if (transfer.from == transfer.to)
        return violation(19, place_, which + " is not a communication");
      const auto from = label[static_cast<std::size_t>(transfer.from)];
      if (from < 0 || from != label[static_cast<std::size_t>(transfer.to)])
        return violation(19, place_, which + " is not within one group");
      if (!is_size(transfer.bytes.in_base()) || !(transfer.bytes > 0_B))
        return violation(19, place_, which + " is not of a finite size above 0");
      sum += transfer.bytes;
      idle.erase(from);
    }
    if (!idle.empty())
      return violation(19, place_,
                       "the group of rank " + text(*idle.begin()) + " exchanges nothing");
    constexpr double kRounding = 1e-9;
    if (std::abs(sum.in_base() - communication.bytes.in_base()) > kRounding * sum.in_base())
      return violation(19, place_,
                       "transfers of " + std::to_string(sum.in_base()) + " B in an exchange of " +
                           std::to_string(communication.bytes.in_base()) + " B");
    return {};
  }
  Status routing_fault(const Communication& communication) const {
    const auto& routing = communication.routing;
    if ((communication.kind == CollectiveKind::kTokenExchange) != routing.has_value())
      return violation(
          21, place_,
          routing ? "only a token_exchange has a routing" : "a token_exchange needs a routing");
    if (!routing) return {};
    const bool is_sound = routing->groups >= 1 && routing->experts % routing->groups == 0 &&
                          routing->groups_per_token >= 1 &&
                          routing->groups_per_token <= routing->groups && routing->per_token >= 1 &&
                          routing->per_token <= std::int64_t{routing->experts} / routing->groups *
                                                    routing->groups_per_token;
    return is_sound ? Status{}
                    : violation(21, place_,
                                "the routing takes " + text(routing->per_token) + " of " +
                                    text(routing->experts) + " experts, in " +
                                    text(routing->groups_per_token) + " of " +
                                    text(routing->groups) + " groups");
  }
  Status roots_fault(const Communication& communication) const {
    if (communication.roots.empty()) return {};
    if (communication.kind != CollectiveKind::kBroadcast)
      return violation(20, place_, "only a broadcast has roots");
    const auto label = labels_of(program_, communication.group);
    std::set<std::int32_t> without(label.begin(), label.end());
    without.erase(-1);
    for (const std::int32_t root : communication.roots) {
      if (!within(root, label) || label[static_cast<std::size_t>(root)] < 0)
        return violation(20, place_, "root " + text(root) + " is in no group");
      if (without.erase(label[static_cast<std::size_t>(root)]) == 0)
        return violation(20, place_, "root " + text(root) + " is the second of its group");
    }
    if (without.empty()) return {};
    return violation(20, place_, "the group of rank " + text(*without.begin()) + " has no root");
  }
  Error size_fault() const { return violation(8, place_, "bytes are not finite and 0 or more"); }
  Status buffer_fault(const std::string& buffer) const {
    if (buffer.empty() || !is_printable(buffer))
      return violation(3, place_, "the buffer's name is empty or not printable UTF-8");
    return stream_fault(false);
  }
  Status stream_fault(bool required) const {
    const std::int32_t stream = task_.stream.value();
    if (within(stream, program_.streams) || (!required && stream == -1)) return {};
    return violation(7, place_,
                     "names stream " + text(stream) + " of " + text(std::ssize(program_.streams)));
  }

  const Program& program_;
  const Task& task_;
  std::string place_;
};

Status after_fault(const Block& block, std::size_t t) {
  const Task& task = block.tasks[t];
  if (!task.after.empty() && (is_allocate(task) || std::holds_alternative<HostWork>(task.body)))
    return violation(6, place_of(block, t), "has an `after`, which it may not have");
  for (const std::int32_t after : task.after) {
    if (after < 0 || static_cast<std::size_t>(after) >= t)
      return violation(6, place_of(block, t), "waits for task " + text(after) + ", no earlier one");
    if (is_allocate(block.tasks[static_cast<std::size_t>(after)]))
      return violation(6, place_of(block, t), "waits for task " + text(after) + ", an allocation");
  }
  return {};
}

Status block_fault(const Program& program) {
  for (const Block& block : program.blocks) {
    bool runs = false;
    for (std::size_t t = 0; t < block.tasks.size(); ++t) {
      const Task& task = block.tasks[t];
      if (!is_printable(task.name))
        return violation(3, "block " + in_quotes(block.name), "a name is not printable UTF-8");
      const std::string place = place_of(block, t);
      FORESHARD_TRY(after_fault(block, t));
      FORESHARD_TRY(std::visit(BodyCheck(program, task, place), task.body));
      if (task.optimizer && !std::holds_alternative<Kernel>(task.body))
        return violation(9, place, "`optimizer` is for kernels");
      if (!is_size(task.launches)) return violation(9, place, "`launches` is not 0 or more");
      if (task.launches != 1 && !std::holds_alternative<Kernel>(task.body) &&
          !std::holds_alternative<Communication>(task.body))
        return violation(9, place, "`launches` is for kernels and communication");
      if (std::holds_alternative<Free>(task.body) && task.after.empty() && !runs)
        return violation(10, place, "has neither an `after` nor a task before it that runs");
      runs = runs || !is_memory(task);
    }
    if (!runs) return violation(10, "block " + in_quotes(block.name), "has no task that runs");
  }
  return {};
}

Status call_fault(const Program& program, const Role& role, std::size_t c) {
  const Call& call = role.calls[c];
  const std::string place = place_of(role, c);
  if (!within(call.block.value(), program.blocks))
    return violation(
        11, place,
        "names block " + text(call.block.value()) + " of " + text(std::ssize(program.blocks)));
  if (call.repeat < 1 || call.chunk < 0 || call.micro_batch < 0)
    return violation(11, place, "repeat is below 1, or chunk or micro-batch below 0");
  const std::int64_t last_layer =
      call.first_layer + (std::int64_t{call.repeat} - 1) * call.layer_step;
  if (std::abs(std::int64_t{call.first_layer}) > kMaxLayer || std::abs(last_layer) > kMaxLayer)
    return violation(11, place, "a layer is beyond " + text(kMaxLayer));
  for (const CallDependency& dependency : call.after) {
    if (dependency.call < 0 || static_cast<std::size_t>(dependency.call) >= c)
      return violation(11, place, "waits for call " + text(dependency.call) + ", no earlier one");
    if (dependency.task == -1) continue;
    const BlockId block = role.calls[static_cast<std::size_t>(dependency.call)].block;
    const auto& tasks = program.blocks[block.index()].tasks;
    if (!within(dependency.task, tasks))
      return violation(11, place,
                       "waits for task " + text(dependency.task) + " of call " +
                           text(dependency.call) + ", which has none such");
    if (is_allocate(tasks[static_cast<std::size_t>(dependency.task)]))
      return violation(11, place,
                       "waits for task " + text(dependency.task) + " of call " +
                           text(dependency.call) + ", an allocation");
  }
  return {};
}

Status calls_fault(const Program& program) {
  for (const Role& role : program.roles) {
    for (std::size_t c = 0; c < role.calls.size(); ++c) FORESHARD_TRY(call_fault(program, role, c));
    std::int64_t runs = 0;
    for (const Call& call : role.calls)
      runs += call.repeat * std::ssize(program.blocks[call.block.index()].tasks);
    if (runs > kMaxInstancesPerRole)
      return violation(14, "role " + in_quotes(role.name),
                       "runs " + text(runs) + " tasks; the limit is " + text(kMaxInstancesPerRole));
  }
  return {};
}

// Conversions of a block (invariant 23) that none of its tasks, except Frees, waits for; ascending.
std::vector<std::int32_t> open_conversions(const Block& block) {
  std::set<std::int32_t> awaited;
  for (const Task& task : block.tasks)
    if (!std::holds_alternative<Free>(task.body))
      awaited.insert(task.after.begin(), task.after.end());
  std::vector<std::int32_t> open;
  for (std::size_t t = 0; t < block.tasks.size(); ++t) {
    const auto* one = std::get_if<Communication>(&block.tasks[t].body);
    const bool converts =
        one != nullptr && (one->purpose == Purpose::kTensor || one->purpose == Purpose::kContext ||
                           one->purpose == Purpose::kExpert);
    const auto index = static_cast<std::int32_t>(t);
    if (converts && block.tasks[t].stream.value() != 0 && !awaited.contains(index))
      open.push_back(index);
  }
  return open;
}

// Whether the block computes with tensors of its call's micro-batch or sends them.
bool reads_tensors(const Block& block) {
  return std::ranges::any_of(block.tasks, [](const Task& task) {
    const auto* one = std::get_if<Communication>(&task.body);
    if (one != nullptr) return one->kind == CollectiveKind::kSend;
    return std::holds_alternative<Kernel>(task.body) && !task.optimizer && task.stream.value() == 0;
  });
}

// Whether `call` waits for task `task` of call `earlier`, whose block is `block`, or for a later
// task of that call on the same stream.
bool waits_for(const Call& call, std::int32_t earlier, const Block& block, std::int32_t task) {
  return std::ranges::any_of(call.after, [&](const CallDependency& one) {
    if (one.call != earlier) return false;
    return one.task < 0 ||
           (one.task >= task && block.tasks[static_cast<std::size_t>(one.task)].stream ==
                                    block.tasks[static_cast<std::size_t>(task)].stream);
  });
}

Status conversions_fault(const Program& program) {
  std::vector<std::vector<std::int32_t>> open;
  std::vector<bool> reading;
  for (const Block& block : program.blocks) {
    open.push_back(open_conversions(block));
    reading.push_back(reads_tensors(block));
  }
  for (const Role& role : program.roles) {
    // (chunk, micro-batch) -> calls
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::int32_t>> unread;
    for (std::size_t c = 0; c < role.calls.size(); ++c) {
      const Call& call = role.calls[c];
      const auto fault = [&](std::int32_t of, std::int32_t task, const std::string& why) {
        const auto index = static_cast<std::size_t>(of);
        return violation(23,
                         place_of(role, index) + " " +
                             place_of(program.blocks[role.calls[index].block.index()],
                                      static_cast<std::size_t>(task)),
                         why);
      };
      const std::size_t own = call.block.index();
      auto& calls = unread[{call.chunk, call.micro_batch}];
      if (reading[own]) {
        for (const std::int32_t earlier : std::exchange(calls, {})) {
          const std::size_t before = role.calls[static_cast<std::size_t>(earlier)].block.index();
          for (const std::int32_t task : open[before])
            if (!waits_for(call, earlier, program.blocks[before], task))
              return fault(earlier, task,
                           "call " + text(static_cast<std::int64_t>(c)) + " does not wait for it");
        }
      }
      if (open[own].empty() || !reading[own]) continue;
      if (call.repeat > 1)
        return fault(static_cast<std::int32_t>(c), open[own].front(),
                     "the next iteration does not wait for it");
      calls.push_back(static_cast<std::int32_t>(c));
    }
  }
  return {};
}

std::string text_of(const Program& program, const Role& role, const MemoryEvent& event) {
  const Call& call = role.calls[static_cast<std::size_t>(event.call)];
  const Block& block = program.blocks[call.block.index()];
  const auto task = static_cast<std::size_t>(event.task);
  const auto* made = std::get_if<Allocate>(&block.tasks[task].body);
  return place_of(role, static_cast<std::size_t>(event.call)) + " " + place_of(block, task) +
         ": buffer " +
         in_quotes(made ? made->buffer : std::get<Free>(block.tasks[task].body).buffer) +
         " of chunk " + text(call.chunk) + ", micro-batch " + text(call.micro_batch) + ", layer " +
         text(call.layer(event.iteration));
}

Status memory_fault(const Program& program, const Expander& expander,
                    const std::vector<Expansion>& expansions) {
  for (std::size_t r = 0; r < program.roles.size(); ++r) {
    const Role& role = program.roles[r];
    const MemoryEvents events = expander.memory_events(r, expansions[r]);
    if (!events.doubled.empty())
      return violation(15, text_of(program, role, events.doubled[0]), "allocated while live");
    if (!events.unmatched.empty())
      return violation(15, text_of(program, role, events.unmatched[0]), "freed, but not live");
    if (!events.unfreed.empty())
      return violation(15, text_of(program, role, events.unfreed[0]),
                       "never freed (what outlives the step belongs in the role's `memory`)");
  }
  return {};
}

Status execution_fault(const Program& program) {
  const Expander expander(program);
  std::vector<Expansion> expansions;
  for (std::size_t r = 0; r < program.roles.size(); ++r) expansions.push_back(expander.expand(r));
  FORESHARD_TRY(memory_fault(program, expander, expansions));
  FORESHARD_ASSIGN(const auto classes, internal::rank_classes(program));
  std::int64_t instances = 0;
  for (const auto& rank_class : classes.classes)
    instances += count_instances(program, program.roles[static_cast<std::size_t>(rank_class.role)]);
  if (instances > kMaxRehearsed)
    return Error{Error::Code::kUnsupported,
                 "program: its ranks differ too much to be checked for deadlocks: " +
                     text(std::ssize(classes.classes)) + " kinds of ranks run " + text(instances) +
                     " tasks; the limit is " + text(kMaxRehearsed)};
  return internal::dry_run(program, classes, expansions);
}

}  // namespace

Status verify(const Program& program) {
  for (const auto check : {mesh_fault, device_fault, table_fault, rank_fault, block_fault,
                           calls_fault, conversions_fault, execution_fault})
    FORESHARD_TRY(check(program));
  return {};
}

}  // namespace foreshard::program
