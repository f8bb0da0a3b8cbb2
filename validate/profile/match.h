/// \file
/// Which kernels of a trace ran which tasks of a Program.
///
/// Kernels get kinds from their names (kernel_names.h), and the phase of the step from the ranges
/// around their launch. Then, for each step of the trace:
///  1. By shape. Products whose operator's shapes were recorded, and collectives whose sizes were,
///     run the task with the same extents; of several, in order. Products of the same input that
///     follow each other run one task together, where their extents add up to its own (three
///     projections for one).
///  2. By kind and order. Of each set of kinds that some kernels share, in each phase, kernels and
///     tasks are aligned in order (align.h). Within a block, which a framework may run in another
///     order, a task moves where all calls together then align better.
///  3. By place. A kernel whose name does not tell its purpose belongs to the passes between the
///     tasks of its neighbours; several share its time as the model expects of them.
/// What is left is unmatched, and named.
///
/// Not modelled: that a framework runs some tasks not at all, for which a neighbour's kernel is
/// taken where it is as long; which of two products of one shape and phase is which.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/program/ir/program.h"
#include "validate/profile/kernel_names.h"
#include "validate/profile/kineto.h"

namespace foreshard::profile {

enum class MatchedBy : std::uint8_t { kNothing, kShape, kOrder, kPlace };

/// One run of a task, a kernel or a communication.
struct ProfiledTask {
  const program::Task* task = nullptr;  ///< Of the Program, which must outlive it.
  std::int32_t block = 0;
  std::int32_t call = 0;
  std::int32_t layer = 0;
  std::int32_t step = 0;  ///< Of the trace.
  Seconds expected;       ///< By the model.
  Seconds measured;       ///< Of all its kernels; 0 where it has none.
  std::int64_t kernels = 0;
  MatchedBy by = MatchedBy::kNothing;
};

struct Match {
  std::vector<ProfiledTask> tasks;         ///< Step by step, each in the order of issue.
  std::vector<MatchedBy> kernels;          ///< As Trace::kernels.
  std::vector<std::int32_t> task_of;       ///< Likewise: index into `tasks`, the first of several.
  std::vector<const KernelName*> line_of;  ///< Likewise; null where no line fits.
  std::int64_t steps = 1;

  Seconds time_of(const Trace& trace, MatchedBy by) const;
  /// Part of the trace's GPU time that belongs to tasks.
  double share(const Trace& trace) const;
  /// Part of the time that the Program's kernels take by the model, of those that the trace shows
  /// by their shape or their order. Little of it: the trace is of another program.
  double shown() const;
};

/// Names, numbers and times of what could not be matched, most time first.
struct Leftover {
  std::string name;
  std::int64_t count = 0;
  Seconds time;
  std::string why;
};
std::vector<Leftover> unmatched_kernels(const Trace& trace, const Match& match);
/// Tasks without a kernel, by block and task; times are the model's.
std::vector<Leftover> unmatched_tasks(const program::Program& program, const Match& match);

using TimeOf = std::function<Seconds(const program::Task&)>;

/// \param names  must outlive the result.
/// \param rank  whose trace it is: decides on the role.
/// \pre the Program is verified; 0 <= rank < program.ranks().
Match match(const program::Program& program, std::int32_t rank, const Trace& trace,
            const KernelNames& names, const TimeOf& expected);

}  // namespace foreshard::profile
