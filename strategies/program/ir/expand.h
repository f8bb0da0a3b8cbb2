/// \file
/// The expander: one role's calls -> its flat list of task instances in the order of issue. The
/// simulator and the replayer both use it, so they run the same tasks with the same dependencies.
///
///     const Expander expander(program);              // once per program
///     const Expansion stage3 = expander.expand(3);   // valid for every rank of role 3
///     for (i < stage3.instances.size()) run(stage3.instances[i], stage3.predecessors(i));
///
/// **Instances** are the kernels, communications, Syncs and HostWork of every iteration of every
/// call. Allocate and Free are not instances: `memory_events` ties them to instances.
///
/// **Predecessors** of an instance are kernels or communications that must finish before it starts,
/// at most one per stream, distinct, each an earlier instance:
///  - the previous instance on its own stream, if any, which comes first;
///  - on each other stream, the latest of its `after` tasks (same iteration);
///  - if it has no `after`: on each other stream, the latest task of the calls in the `after` of
///    its call;
///  - for a Sync: on each stream, the latest of its `after`; without an `after`, the last instance
///    issued so far.
/// Dependencies that follow from others are left out: on a task that an earlier instance of the
/// same stream, or the Sync before it, already waited for; and on a Sync or HostWork (the host ran
/// it before it launched this instance). Iteration k+1 waits for iteration k through the streams
/// only.
///
/// **Host.** An instance starts no earlier than `host_offset` after the finish of the instance
/// `host_sync` (after the start of the step, if it is negative). For a kernel or communication the
/// offset holds all launches and HostWork issued since that Sync, its own launch included. HostWork
/// runs from `host_offset` on, for its own `time`; a Sync finishes when its predecessors are done
/// and `host_offset` has passed, and takes no time itself. So in the engine's terms (workload.h):
/// release_from = host_sync, release_lag = host_offset, edges = predecessors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "base/units.h"

#include "strategies/program/ir/program.h"

namespace foreshard::program {

/// One run of one task.
struct Instance {
  std::int32_t call = 0;       ///< Index into the role's calls.
  std::int32_t iteration = 0;  ///< Iteration of the call, below its `repeat`.
  std::int32_t task = 0;       ///< Index into the block's tasks.
  std::int32_t stream = -1;    ///< Index into Program::streams; negative: the host.
  std::int32_t host_sync = -1;
  Seconds host_offset;
};

/// All instances of one role.
struct Expansion {
  std::vector<Instance> instances;  ///< Instances, in the order of issue.
  /// instance -> index in `flat` of its first predecessor; one entry more than instances.
  std::vector<std::uint32_t> begin;
  std::vector<std::int32_t> flat;           ///< Predecessors of all instances, one after another.
  std::vector<std::int32_t> first_of_call;  ///< call -> its first instance; one more than calls.

  std::span<const std::int32_t> predecessors(std::size_t instance) const {
    return {flat.data() + begin[instance], flat.data() + begin[instance + 1]};
  }
};

/// A buffer of a role is allocated or freed.
struct MemoryEvent {
  bool allocate = true;
  MemoryKind kind = MemoryKind::kActivations;
  Bytes bytes;
  std::int32_t call = 0;
  std::int32_t iteration = 0;
  std::int32_t task = 0;            ///< The Allocate or Free.
  std::uint32_t anchors_begin = 0;  ///< Index into MemoryEvents::anchors.
  std::uint32_t anchors_end = 0;
};

/// An Allocate happens at the start of its one anchor; a Free when all its anchors (at least one,
/// at most one per stream and one of the host) are finished.
struct MemoryEvents {
  std::vector<MemoryEvent> events;  ///< Events, in the order of issue.
  std::vector<std::int32_t> anchors;
  // Faults; all three are empty for verified programs.
  std::vector<MemoryEvent> unmatched;  ///< Frees without a live buffer.
  std::vector<MemoryEvent> unfreed;    ///< Allocates without a Free.
  std::vector<MemoryEvent> doubled;    ///< Allocates of a buffer that is already live.

  std::span<const std::int32_t> anchors_of(const MemoryEvent& event) const {
    return {anchors.data() + event.anchors_begin, anchors.data() + event.anchors_end};
  }
};

/// Instances per role that an Expander is prepared to make; verify refuses more.
inline constexpr std::int64_t kMaxInstancesPerRole = std::int64_t{1} << 26;

/// Number of instances of a role, without expanding it.
/// \pre block indices are valid.
std::int64_t count_instances(const Program& program, const Role& role);

/// Expands the roles of one Program, which must outlive it. Thread-safe once built.
class Expander {
 public:
  /// \pre the program meets invariants 1 to 14 of verify.h.
  explicit Expander(const Program& program);
  ~Expander();
  Expander(const Expander&) = delete;
  Expander& operator=(const Expander&) = delete;

  /// Cost: O(instances + predecessors).
  /// \pre role < program.roles.size()
  Expansion expand(std::size_t role) const;
  /// The same with launches that take `launch_time` instead of the Program's launch time, as on the
  /// host of one of the role's ranks. Only `host_offset` depends on it.
  Expansion expand(std::size_t role, Seconds launch_time) const;
  /// The memory events that the role's Allocates and Frees cause.
  /// \pre `expansion` is an expansion of this role.
  MemoryEvents memory_events(std::size_t role, const Expansion& expansion) const;

 private:
  struct Prepared;
  std::unique_ptr<const Prepared> prepared_;
};

/// The task that an instance runs.
inline const Task& task_of(const Program& program, const Role& role, const Instance& instance) {
  const Call& call = role.calls[static_cast<std::size_t>(instance.call)];
  return program.blocks[call.block.index()].tasks[static_cast<std::size_t>(instance.task)];
}

/// Whether a task is an entry of the memory timeline instead of work.
inline bool is_allocate(const Task& task) {
  return std::holds_alternative<Allocate>(task.body);
}
inline bool is_memory(const Task& task) {
  return is_allocate(task) || std::holds_alternative<Free>(task.body);
}

}  // namespace foreshard::program
