/// \file
/// The Program: what one training step does, on every rank. `sim/` predicts it, `foreshard-replay`
/// executes it; nothing else runs a strategy.
///
/// A Program is compact: *blocks* are task graphs (a layer's forward pass, the optimizer ...); a
/// *role* is a set of ranks that do the same, with the ordered list of block *calls* they make.
///
/// Execution (both executors obey it; it is that of CUDA streams):
///  1. A rank makes the calls of its role in order; a call issues its block's tasks in order, and a
///     call with `repeat` n does so n times.
///  2. Tasks on one stream run one after another, in the order of issue.
///  3. A task starts when its stream is free, its `after` tasks (same call) are done, and, if it is
///     without an `after`, the calls in the call's own `after` are done.
///  4. Every kernel and communication is launched by the rank's host, one after another, in the
///     order of issue: it starts no earlier than its launch is done. A `Sync` makes the host wait,
///     `HostWork` keeps it busy; both run on the host, on no stream.
///  5. The n-th communication with the same `tag` of every member of a group is one operation. It
///     starts when all its members reached it and ends for all of them together. A transfer
///     (send/receive) has two members: the sender's n-th send with that tag and that peer, and the
///     receiver's n-th receive.
///
/// Invariants (verify.h checks exactly these): see verify.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

#include "strategies/program/ir/kernel.h"
#include "strategies/program/ir/token_routing.h"

namespace foreshard::program {

/// One axis of the process mesh, for example {"tensor", 8}. The first axis varies fastest over
/// ranks: rank = c0 + n0 (c1 + n1 (c2 + ...)).
struct MeshAxis {
  std::string name{};
  std::int64_t size = 1;
  auto operator<=>(const MeshAxis&) const = default;
};

/// What time that is not hidden by computation is booked under.
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
  kShift,     ///< Likewise: each rank to the next of its group, the last one to the first.
  /// An all_to_all of tokens to their experts, or back, that crosses between nodes once for each
  /// token and node, and is copied (added up) there: DeepEP.
  kTokenExchange,
  // A rank by itself, with the memory of its host: copies by a copy engine of the device, one in
  // each direction ...
  kToHost,
  kFromHost,
  kOnHost,  ///< ... and what the CPU reads and writes there in the rank's stead.
};
/// Whether a rank does it by itself, with the memory of its host.
constexpr bool is_with_host(CollectiveKind kind) {
  return kind == CollectiveKind::kToHost || kind == CollectiveKind::kFromHost ||
         kind == CollectiveKind::kOnHost;
}

/// The ranks that take part, seen from a rank r: all ranks that agree with r on every mesh axis not
/// in `axes`. With `coordinates` (one axis only): of those, the ranks whose coordinate on the axis
/// is listed; a rank that is not listed must not call it. Of operations with the host no axis is
/// listed: each rank is a group.
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
  /// Size of the operation as nccl-tests counts it: the buffer of all_reduce, broadcast, send and
  /// receive; the large (gathered) side of all_gather and reduce_scatter; one rank's whole send
  /// buffer of all_to_all, and of token_exchange, where it holds each token once for each rank;
  /// what one rank sends of a shift; what one rank copies to or from the host, or reads and writes
  /// there; of an exchange the sum of its transfers, over all groups.
  Bytes bytes{};
  DType dtype = DType::kBf16;
  Purpose purpose = Purpose::kData;
  std::string tag{};  ///< See rule 5. Defaults to the task's name.
  /// Of an exchange, in all groups: which rank sends what to which. It ends for all ranks of a
  /// group together, so ranks that have nothing to do with each other belong in different groups.
  std::vector<Transfer> transfers{};
  /// Of a broadcast: the rank of each group that has the data. Empty: the lowest of each.
  std::vector<std::int32_t> roots{};
  /// Of a token_exchange, and of nothing else.
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

/// A buffer comes into being when the preceding task of the block starts (the nearest earlier one
/// that is not itself an Allocate or Free; if there is none, the first one after it). Has no
/// `after`, and nothing waits for it.
struct Allocate {
  std::string buffer{};
  MemoryKind kind = MemoryKind::kActivations;
  Bytes bytes{};
  auto operator<=>(const Allocate&) const = default;
};
/// The buffer of that name, allocated earlier by this rank with the same chunk, micro-batch and
/// model layer, is given back when the task's `after` tasks (default: the preceding task, as above)
/// are done. To wait for a Free is to wait for those tasks.
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
  StreamId stream{};  ///< Index into Program::streams; of kernels and communication.
  std::vector<std::int32_t> after{};  ///< Earlier tasks of the same block, by index.
  bool optimizer = false;             ///< Kernels only: booked as `optimizer`, not as `compute`.
  /// Of kernels and communication: what the host does to launch it, as a multiple of `launch_time`.
  /// 0: a CUDA graph that was launched with an earlier task launches it (whoever runs the Program
  /// may do so by itself).
  double launches = 1;
  bool operator==(const Task&) const = default;
};

struct Block {
  std::string name{};
  std::vector<Task> tasks{};
  bool operator==(const Block&) const = default;
};
using BlockId = Id<struct BlockTag>;

/// A completed piece of an earlier call of the same role: its task `task`, or all of it if < 0. Of
/// a call with `repeat`, its last iteration.
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
  std::int32_t first_layer = 0;  ///< Model layer of the first iteration...
  std::int32_t layer_step = 1;   ///< ... and the step to the next one (-1 in a backward pass).
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
  std::string name{};                 ///< For example "stage 3".
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
  double samples = 0;   ///< Sequences, images ... per step; of packed samples those in them.
  double tokens = 0;    ///< Of samples, per step; 0 where these do not consist of tokens.
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
  /// The same of each rank, where their hosts differ: `launch_time` is then the longest of them.
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

}  // namespace foreshard::program
