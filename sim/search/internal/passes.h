/// \file
/// What one pass through a lowered block takes, from its tasks and their dependencies alone.
///
/// Blocks that differ in what they compute again have most of their kernels in common. So a block's
/// tasks are kept as numbers of works (PassTasks), of which each is timed once (WorkTimes).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

#include "sim/search/internal/peaks.h"
#include "sim/search/internal/times.h"
#include "strategies/program/lower/block.h"

namespace foreshard::search {

/// One pass through a block, all its streams idle before.
struct PassTime {
  Seconds first;  ///< From its first task's start to its last one's end.
  Seconds next;   ///< What each further pass right behind it adds.
  /// The least time from its first to its last kernel on each kind of device, and on the fastest:
  /// with the fastest groups, and nothing else on the links. No engine finds less on a device of
  /// that kind.
  Seconds least;
  std::vector<Seconds> least_of_kinds{};  ///< Empty: there is one kind.
  Seconds exposed;  ///< Of the least, at most: communication that kernels wait for.
  /// Of its busiest stream, all that it runs: a pass beside another one takes no longer if what is
  /// exposed of the one is hidden by the other.
  Seconds busy;
  /// Of its kernels alone, likewise.
  Seconds kernels;
  std::vector<Seconds> kernels_of_kinds{};
  double launches = 0;
  Seconds host;  ///< What the host does beside launching.

  bool runs() const { return busy > Seconds{}; }
  /// Of the host, where a launch takes `launch`.
  Seconds hosting(Seconds launch) const { return launches * launch + host; }
  Seconds times(std::int64_t n) const {
    return n == 0 ? Seconds{} : first + static_cast<double>(n - 1) * next;
  }
};

/// Kernels and communication of some blocks, each once.
class Works {
 public:
  /// The number of what the task does; -1: what takes no time.
  std::int32_t of(const program::Task& task);
  std::span<const program::TaskBody> all() const { return all_; }
  /// Calls `change` with each communication.
  template <class Change>
  void change(Change change) {
    for (program::TaskBody& body : all_)
      if (auto* what = std::get_if<program::Communication>(&body)) change(*what);
  }

 private:
  std::vector<program::TaskBody> all_;
};

/// Where streams of communication take more than this of a device each, nothing is told of what
/// they take from kernels: it might be faster to wait for the one than to run beside both.
inline constexpr double kMostShare = 0.5;

/// What works take.
struct WorkTimes {
  std::vector<Seconds> slowest{};
  /// Of each kind of device, a kernel on it; communication by the fastest groups, whatever the
  /// kind.
  std::vector<std::vector<Seconds>> of_kinds{};
  std::vector<Held> held{};  ///< Of kernels, nothing.
};
/// On devices of these kinds; of groups of a stage as in Times::collective.
Result<WorkTimes> work_times(const Works& works, const std::vector<MeshAxis>& mesh,
                             const Kinds& kinds, Times& times, std::int32_t stage = kAnyStage);

/// The tasks of a block.
class PassTasks {
 public:
  PassTasks() = default;
  PassTasks(const program::Block& block, Works& works);

  PassTime time(const WorkTimes& times) const;

 private:
  struct Task {
    std::int32_t work = -1;
    std::int32_t stream = -1;  // -1: none
    bool is_kernel = false;
    bool may_be_early = false;  // communication that waits for nothing
    std::int32_t first_after = 0;
  };
  template <class TimeOf>
  void run(std::vector<Seconds>& free, TimeOf time_of) const;
  std::span<const std::int32_t> after(std::size_t task) const;
  // What a pass takes at least, and how much of that is communication.
  struct Least {
    Seconds time;
    Seconds exposed;
  };
  Least least(const std::vector<Seconds>& works, const std::vector<Held>& held) const;

  std::vector<Task> tasks_{};
  std::vector<std::int32_t> after_{};  // of all tasks
  double launches_ = 0;
  Seconds host_;  // of HostWork
};

/// Of a block by itself, as work_times.
Result<PassTime> pass_time(const program::Block& block, const std::vector<MeshAxis>& mesh,
                           const Kinds& kinds, Times& times, std::int32_t stage = kAnyStage);

struct PassTimes {
  PassTime forward;
  PassTime backward;
  PassTime input{};  ///< Where backward passes run in two parts.
  PassTime weight{};

  const PassTime& of(Direction direction, plan::Part part) const {
    if (direction == Direction::kForward) return forward;
    return part == plan::Part::kWhole ? backward : part == plan::Part::kInput ? input : weight;
  }
};
/// Those of a stage's blocks, by block; null where there is none.
using BlockTimes = std::array<const PassTimes*, kBlocks>;
/// Whether a host may end a pass later than its device, though it began the pass no later.
/// \param launch  what a launch takes.
bool may_be_late(const PassOf& pass, const BlockTimes& times, Seconds launch);
/// Whether all of a load is there, as no host can be late for it.
/// \param rests  whether it has what the pass before leaves, or what is gathered or reduced for
///     others: all that begins as that pass ends.
bool is_certain(const PassOf& pass, const PassOf& before, bool rests, const BlockTimes& times,
                Seconds launch);
/// Of each block, in the order of LoweredModel::all().
using ModelTimes = std::vector<PassTimes>;
Result<ModelTimes> model_times(const lower::LoweredModel& model, const Kinds& kinds, Times& times,
                               std::int32_t stage = kAnyStage);

}  // namespace foreshard::search
