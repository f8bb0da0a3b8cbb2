/// \file
/// The time of one pass through a lowered block, from its tasks and their dependencies alone.
///
/// Blocks that differ in what they recompute have most of their kernels in common. So a block's
/// tasks are stored as indices of works (PassTasks), and each work is timed once (WorkTimes).
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

/// Times of one pass through a block, with all its streams idle before.
struct PassTime {
  Seconds first;  ///< Time from the start of the first task to the end of the last one.
  Seconds next;   ///< Time that each further pass right after it adds.
  /// The least time from its first kernel to its last on the fastest kind of device, and on each
  /// kind (`least_of_kinds`): communication in the fastest groups, and nothing else on the links.
  /// No engine finds less on a device of that kind.
  Seconds least;
  std::vector<Seconds> least_of_kinds{};  ///< Empty where there is one kind.
  Seconds exposed;  ///< Upper bound of the part of `least` in which kernels wait for communication.
  /// Sum of all tasks on its busiest stream. A pass beside another one takes no longer if each
  /// hides the exposed communication of the other.
  Seconds busy;
  /// The same as `least` and `least_of_kinds` for its kernels alone.
  Seconds kernels;
  std::vector<Seconds> kernels_of_kinds{};
  double launches = 0;
  Seconds host;  ///< Time of the host beside launches.

  bool runs() const { return busy > Seconds{}; }
  /// Time of the host, where a launch takes `launch`.
  Seconds hosting(Seconds launch) const { return launches * launch + host; }
  Seconds times(std::int64_t n) const {
    return n == 0 ? Seconds{} : first + static_cast<double>(n - 1) * next;
  }
};

/// Distinct kernels and communication of some blocks.
class Works {
 public:
  /// The index of the task's work; -1: the task takes no time.
  std::int32_t of(const program::Task& task);
  std::span<const program::TaskBody> all() const { return all_; }
  /// Calls `change` on each communication.
  template <class Change>
  void change(Change change) {
    for (program::TaskBody& body : all_)
      if (auto* what = std::get_if<program::Communication>(&body)) change(*what);
  }

 private:
  std::vector<program::TaskBody> all_;
};

/// Where streams of communication together hold more than this share of a device, the bound leaves
/// out what they take from kernels: it might be faster to wait for one than to run beside all.
inline constexpr double kMostShare = 0.5;

/// Times of works, by their index.
struct WorkTimes {
  std::vector<Seconds> slowest{};
  /// kind of device -> times on it; communication has the time of the fastest groups for every
  /// kind.
  std::vector<std::vector<Seconds>> of_kinds{};
  std::vector<SmContention> held{};  ///< Zero for kernels.
};
/// Times on devices of these kinds; `stage` as in CostCache::collective.
Result<WorkTimes> work_times(const Works& works, const std::vector<MeshAxis>& mesh,
                             const Kinds& kinds, CostCache& times, std::int32_t stage = kAnyStage);

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
    bool may_be_early = false;  // communication without dependencies, off the compute stream
    std::int32_t first_after = 0;
  };
  template <class TimeOf>
  void run(std::vector<Seconds>& free, TimeOf time_of) const;
  std::span<const std::int32_t> after(std::size_t task) const;
  // The least time of a pass, and how much of it is communication.
  struct Least {
    Seconds time;
    Seconds exposed;
  };
  Least least(const std::vector<Seconds>& works, const std::vector<SmContention>& held) const;

  std::vector<Task> tasks_{};
  std::vector<std::int32_t> after_{};  // dependencies, task by task
  double launches_ = 0;
  Seconds host_;  // sum of HostWork
};

/// The time of a single block; arguments as in work_times.
Result<PassTime> pass_time(const program::Block& block, const std::vector<MeshAxis>& mesh,
                           const Kinds& kinds, CostCache& times, std::int32_t stage = kAnyStage);

struct PassTimes {
  PassTime forward;
  PassTime backward;
  PassTime input{};  ///< Used where backward passes run in two parts.
  PassTime weight{};

  const PassTime& of(Direction direction, plan::PassPart part) const {
    if (direction == Direction::kForward) return forward;
    return part == plan::PassPart::kWhole   ? backward
           : part == plan::PassPart::kInput ? input
                                            : weight;
  }
};
/// block -> passes on a stage; null where there is no such block.
using BlockTimes = std::array<const PassTimes*, kBlocks>;
/// Whether a host may end a pass later than its device, though it began the pass no later.
/// \param launch  time of a launch.
bool may_be_late(const BlockPass& pass, const BlockTimes& times, Seconds launch);
/// Whether all of a live set is certainly live at once, because no host can be late for it.
/// \param depends  depends_on_others(): whether the live set has buffers that the pass before
///     leaves, or that are gathered or reduced for other passes; these need that pass's host to be
///     on time as well.
bool is_certain(const BlockPass& pass, const BlockPass& before, bool depends,
                const BlockTimes& times, Seconds launch);
/// One per block, in the order of LoweredModel::all().
using ModelTimes = std::vector<PassTimes>;
Result<ModelTimes> model_times(const lower::LoweredModel& model, const Kinds& kinds,
                               CostCache& times, std::int32_t stage = kAnyStage);

}  // namespace foreshard::search
