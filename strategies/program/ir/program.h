/// \file
/// The Program: what one training step does, on every rank. `sim/` predicts it, `foreshard-replay`
/// executes it; nothing else runs a strategy.
///
/// A Program is compact: *blocks* are task graphs (a layer's forward pass, the optimizer ...); a
/// *role* is a set of ranks that do the same, with the ordered list of block *calls* they make.
///
/// Execution (as with CUDA streams; both executors obey these rules):
///  1. A rank makes the calls of its role in order; a call issues its block's tasks in order, and a
///     call with `repeat` n does so n times.
///  2. Tasks on one stream run one after another, in the order of issue.
///  3. A task starts when its stream is free, its `after` tasks (same call) are done and, if it has
///     no `after`, the calls in its call's own `after` are done.
///  4. Every kernel and communication is launched by the rank's host, one after another, in the
///     order of issue: it starts no earlier than its launch is done. A `Sync` makes the host wait,
///     `HostWork` keeps it busy; both run on the host, on no stream.
///  5. The n-th communication with the same `tag` of every member of a group is one operation. It
///     starts when all its members have reached it and ends for all of them together. A transfer
///     (send/receive) has two members: the sender's n-th send with that tag and that peer, and the
///     receiver's n-th receive.
///
/// Invariants (verify.h checks exactly these): see verify.h.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "strategies/program/ir/kernel.h"

namespace foreshard::program {

/// How tokens are routed to experts, as far as that decides what moves: to how many ranks or nodes
/// a token goes. Libraries that know the routing send one copy of a token to each place (rank or
/// node), however many of its experts are there.
///
/// A token goes to `per_token` of `experts` experts. The experts form `groups` equal groups, and
/// all experts of a token lie in `groups_per_token` of these.
struct TokenRouting {
  std::int32_t experts = 1;
  std::int32_t per_token = 1;
  std::int32_t groups = 1;
  std::int32_t groups_per_token = 1;
  auto operator<=>(const TokenRouting&) const = default;
};

/// The probability that at least one of a token's experts lies in a place (a rank, a node) that
/// holds `share` of all experts, adjacent ones. All choices of groups, and of experts within the
/// groups, are equally likely. A place holds whole groups, or an equal part of one group; where it
/// holds neither, groups are ignored. Source: hypergeometric probabilities; a group is a node's
/// experts in DeepSeek-AI, "DeepSeek-V3 technical report" (arXiv 2412.19437), section 2.1.2
/// (node-limited routing). Not modelled: that a token chooses the groups in which its experts score
/// highest, so that each chosen group holds some of its experts a little more often.
/// \pre 0 < share <= 1; per_token <= experts of groups_per_token groups
double visit_probability(const TokenRouting& routing, double share);

/// The average number of places, out of `places` equal ones, that hold experts of a token.
inline double expected_places(const TokenRouting& routing, std::int64_t places) {
  const auto count = static_cast<double>(places);
  return count * visit_probability(routing, 1 / count);
}

/// One axis of the process mesh, for example {"tensor", 8}. The first axis varies fastest over
/// ranks: rank = c0 + n0 (c1 + n1 (c2 + ...)).
struct MeshAxis {
  std::string name{};
  std::int64_t size = 1;
  auto operator<=>(const MeshAxis&) const = default;
};

/// What communication is for: its time that computation does not hide is booked under this name.
enum class Purpose : std::uint8_t {
  kTensor,
  kContext,
  kExpert,
  kPipeline,
  kData,
  kOffload,  ///< Booked under the host.
};

enum class CollectiveKind : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kAllToAll,
  kSend,
  kReceive,
  kExchange,  ///< Sends and receives of one group call (ncclGroupStart ... ncclGroupEnd).
  kShift,  ///< Each rank sends to the next of its group, the last to the first, in one group call.
  /// An all_to_all of tokens to their experts, or back, in which a token crosses once to each node
  /// and is copied there (on the way back: added up there). Source: DeepEP.
  kTokenExchange,
  // Operations of a single rank with the memory of its host.
  kToHost,    ///< A copy by one of the device's copy engines.
  kFromHost,  ///< A copy by another copy engine: there is one for each direction.
  kOnHost,    ///< Reads and writes of the CPU there, in the rank's stead.
};
/// Whether it is an operation of a single rank with the memory of its host.
constexpr bool is_with_host(CollectiveKind kind) {
  return kind == CollectiveKind::kToHost || kind == CollectiveKind::kFromHost ||
         kind == CollectiveKind::kOnHost;
}

/// The ranks that take part, seen from a rank r: all ranks that agree with r on every mesh axis not
/// in `axes`. With `coordinates` (one axis only), only ranks whose coordinate on that axis is
/// listed take part; other ranks must not call the operation. Operations with the host list no
/// axis: each rank is a group.
struct AxisGroup {
  std::vector<std::int32_t> axes{};  ///< Indices into Program::mesh, ascending.
  std::vector<std::int64_t> coordinates{};
  auto operator<=>(const AxisGroup&) const = default;
};
/// The peer of a transfer: the rank whose coordinate on `axis` is `coordinate`, else equal to r.
struct AxisPeer {
  std::int32_t axis = 0;
  std::int64_t coordinate = 0;
  auto operator<=>(const AxisPeer&) const = default;
};
/// Groups written out: disjoint lists of ranks; a rank belongs to the list that holds it.
struct RankGroups {
  std::vector<std::vector<std::int32_t>> groups{};
  auto operator<=>(const RankGroups&) const = default;
};
using Group = std::variant<AxisGroup, AxisPeer, RankGroups>;

/// One send and its receive.
struct Transfer {
  std::int32_t from = 0;  ///< Rank.
  std::int32_t to = 0;
  Bytes bytes{};
  auto operator<=>(const Transfer&) const = default;
};

struct Communication {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Group group{};
  /// Size of the operation as nccl-tests counts it:
  ///  - all_reduce, broadcast, send, receive: the buffer;
  ///  - all_gather, reduce_scatter: the large (gathered) side;
  ///  - all_to_all, token_exchange: one rank's whole send buffer, which in a token_exchange holds
  ///    each token once for each rank;
  ///  - shift: what one rank sends;
  ///  - to_host, from_host, on_host: what one rank copies, or reads and writes on the host;
  ///  - exchange: the sum of its transfers, over all groups.
  Bytes bytes{};
  DType dtype = DType::kBf16;
  Purpose purpose = Purpose::kData;
  std::string tag{};  ///< Matches the members' operations (rule 5 above). Empty: the task's name.
  /// Exchange only: which rank sends how much to which, in all groups. An exchange ends for all
  /// ranks of a group together, so ranks that have nothing to do with each other belong in
  /// different groups.
  std::vector<Transfer> transfers{};
  /// Broadcast only: the rank of each group that has the data. Empty: the lowest rank of each
  /// group.
  std::vector<std::int32_t> roots{};
  /// Set for a token_exchange, and for nothing else.
  std::optional<TokenRouting> routing{};
  auto operator<=>(const Communication&) const = default;
};

enum class MemoryKind : std::uint8_t {
  kParameters,
  kGradients,
  kOptimizer,
  kActivations,
  kBuffers
};

/// A buffer comes into being when the preceding task of the block starts (the nearest earlier task
/// that is not itself an Allocate or Free; if there is none, the first one after it). An Allocate
/// has no `after`, and nothing waits for it.
struct Allocate {
  std::string buffer{};
  MemoryKind kind = MemoryKind::kActivations;
  Bytes bytes{};
  auto operator<=>(const Allocate&) const = default;
};
/// The buffer of that name, allocated earlier by this rank with the same chunk, micro-batch and
/// model layer, is freed when the task's `after` tasks (default: the preceding task, as above) are
/// done. Waiting for a Free means waiting for those tasks.
struct Free {
  std::string buffer{};
  auto operator<=>(const Free&) const = default;
};
/// The host waits until the task's `after` (or, without one, everything issued so far) is done.
struct Sync {
  auto operator<=>(const Sync&) const = default;
};
/// Work of the host itself (data loading, Python bookkeeping): delays the launches that follow. It
/// waits for no device task (put a Sync before it) and has no `after`.
struct HostWork {
  Seconds time{};
  auto operator<=>(const HostWork&) const = default;
};

using TaskBody = std::variant<Kernel, Communication, Allocate, Free, Sync, HostWork>;

/// Streams of a rank. Kernels run on kCompute; communication on any.
using StreamId = Id<struct StreamTag>;

struct Task {
  std::string name{};
  TaskBody body{};
  StreamId stream{};  ///< Index into Program::streams, for kernels and communication.
  std::vector<std::int32_t> after{};  ///< Earlier tasks of the same block, by index.
  bool optimizer = false;             ///< Kernels only: booked as `optimizer`, not as `compute`.
  /// Host time to launch a kernel or communication, as a multiple of `launch_time`. 0: it belongs
  /// to a CUDA graph that was launched with an earlier task (whoever runs the Program may still
  /// launch it by itself).
  double launches = 1;
  bool operator==(const Task&) const = default;
};

struct Block {
  std::string name{};
  std::vector<Task> tasks{};
  bool operator==(const Block&) const = default;
};
using BlockId = Id<struct BlockTag>;

/// A completed piece of an earlier call of the same role: its task `task`, or the whole call if
/// `task` < 0. For a call with `repeat`, it is a piece of the last iteration.
struct CallDependency {
  std::int32_t call = 0;
  std::int32_t task = -1;
  auto operator<=>(const CallDependency&) const = default;
};

struct Call {
  BlockId block{};
  std::int32_t repeat = 1;  ///< Iterations, each of all the block's tasks.
  std::int32_t chunk = 0;   ///< Virtual pipeline stage.
  std::int32_t micro_batch = 0;
  std::int32_t first_layer = 0;  ///< Model layer of the first iteration.
  std::int32_t layer_step = 1;   ///< Layers to the next iteration's (-1 in a backward pass).
  std::vector<CallDependency> after{};
  bool operator==(const Call&) const = default;

  std::int32_t layer(std::int32_t iteration) const { return first_layer + iteration * layer_step; }
};

/// Buffers that exist during the whole step (parameters, optimizer state ...).
struct StaticMemory {
  MemoryKind kind = MemoryKind::kParameters;
  Bytes bytes{};
  bool operator==(const StaticMemory&) const = default;
};

struct Role {
  std::string name{};                 ///< Name, for example "stage 3".
  std::vector<std::int32_t> ranks{};  ///< Ascending. Every rank has exactly one role.
  std::vector<Call> calls{};
  std::vector<StaticMemory> memory{};
  bool operator==(const Role&) const = default;
};

struct Stream {
  std::string name{};
  bool operator==(const Stream&) const = default;
};

/// What the step achieves, for throughput figures.
struct Totals {
  double samples = 0;   ///< Sequences, images ... per step; packed samples count one by one.
  double tokens = 0;    ///< Tokens per step; 0 where samples do not consist of tokens.
  Flops model_flops{};  ///< Forward and backward once, without recomputation, all ranks.
  std::string peak_dtype = "bf16";  ///< The dtype whose peak MFU refers to.
  bool operator==(const Totals&) const = default;
};

struct Program {
  std::string name{};
  std::vector<MeshAxis> mesh{};
  std::vector<std::int32_t> device_of_rank{};  ///< Empty: rank r runs on device r.
  std::vector<Stream> streams{};               ///< Stream 0 is the compute stream.
  Seconds launch_time{};                       ///< Host time to launch one kernel or communication.
  /// rank -> its launch time, where hosts differ; `launch_time` is then the longest of these.
  std::vector<Seconds> launch_time_of_rank{};
  std::vector<Block> blocks{};
  std::vector<Role> roles{};
  Totals totals{};
  bool operator==(const Program&) const = default;

  std::int64_t ranks() const {
    std::int64_t n = 1;
    for (const auto& axis : mesh) n *= axis.size;
    return n;
  }
  Seconds launch_time_of(std::int32_t rank) const {
    return launch_time_of_rank.empty() ? launch_time
                                       : launch_time_of_rank[static_cast<std::size_t>(rank)];
  }
};

std::string_view name_of(Purpose purpose);      ///< "tensor", "context", "expert", ...
std::string_view name_of(CollectiveKind kind);  ///< "all_reduce", "send", ...
std::string_view name_of(MemoryKind kind);      ///< "parameters", "gradients", ...

/// The same for people: "transfer" for both ends of one.
std::string_view name_of_operation(CollectiveKind kind);

/// \return nothing if no enumerator has that name.
std::optional<Purpose> find_purpose(std::string_view name);
std::optional<CollectiveKind> find_collective(std::string_view name);
std::optional<MemoryKind> find_memory_kind(std::string_view name);

}  // namespace foreshard::program
