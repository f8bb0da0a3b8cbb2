/// \file
/// Finds which kernels of a trace ran which tasks of a Program.
///
/// Kernels get kinds from their names (kernel_names.h) and a phase of the step from the ranges
/// around their launch. Then, for each step of the trace, they are matched in three ways:
///  1. By shape. A product whose operator's shapes were recorded, or a collective whose size was
///     recorded, runs the task with the same extents; several such tasks are taken in order.
///     Products of the same input that follow each other run one task together if their extents add
///     up to the task's (three projections for one).
///  2. By kind and order. Kinds that may have the same kernel name form a set. In each phase, the
///     kernels and tasks of a set are aligned in order (aligned). A framework may run the tasks of
///     a block in another order: a task moves if that improves the alignment of all calls together.
///  3. By place. A kernel whose name does not tell its purpose belongs to the passes between the
///     tasks of its neighbours. Several passes share its time in proportion to their expected
///     times.
/// The remaining kernels and tasks are reported as unmatched.
///
/// Not modelled: a framework that does not run some tasks at all; such a task takes a neighbour's
/// kernel of similar length. Two products of the same shape and phase may be mistaken for each
/// other.
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

/// A task for aligned().
struct Expected {
  Seconds time;
  std::int64_t most = 1;  ///< Most units that the task may take.
};

struct Alignment {
  std::vector<std::int32_t> task_of;  ///< Unit -> index of its task; negative: none.
  double cost = 0;
};
/// Aligns a sequence of measured units with a sequence of expected tasks. Each task takes up to
/// `most` consecutive units. The alignment minimises
///
///     cost = sum over tasks of  min(|ln(time of its units / expected)|, 2) + 0.3 (units - 1)
///          + 2.5 for each task without a unit and each unit without a task
///
/// The constants weigh matches against each other: where tasks and units are equally many, each
/// task takes one unit; a unit joins another one if it adds time that the task lacks.
/// Source: Needleman and Wunsch, "A general method applicable to the search for similarities in the
/// amino acid sequence of two proteins", J. Mol. Biol. 48, 1970, extended to runs of units.
/// Cost: O(tasks x band x most), where the band surrounds the straight line from the first task and
/// unit to the last.
Alignment aligned(const std::vector<Expected>& tasks, const std::vector<Seconds>& units);

enum class MatchedBy : std::uint8_t { kNothing, kShape, kOrder, kPlace };

/// One run of a task, a kernel or a communication.
struct ProfiledTask {
  const program::Task* task = nullptr;  ///< Task of the Program, which must outlive it.
  std::int32_t block = 0;
  std::int32_t call = 0;
  std::int32_t layer = 0;
  std::int32_t step = 0;  ///< Step of the trace, from 0.
  Seconds expected;       ///< Time according to the model.
  Seconds measured;       ///< Time of all its kernels; 0 if it has none.
  std::int64_t kernels = 0;
  MatchedBy by = MatchedBy::kNothing;
};

struct Match {
  std::vector<ProfiledTask> tasks;  ///< Step by step, in the order of issue within a step.
  std::vector<MatchedBy> kernels;   ///< One per kernel of Trace::kernels.
  /// One per kernel: index into `tasks`, the first of several; -1: none.
  std::vector<std::int32_t> task_of;
  std::vector<const KernelName*> line_of;  ///< One per kernel: its name's entry; null: none fits.
  std::int64_t steps = 1;

  Seconds time_of(const Trace& trace, MatchedBy by) const;
  /// Fraction of the trace's GPU time that is matched to tasks.
  double share(const Trace& trace) const;
  /// Fraction of the expected time of the Program's kernels whose tasks were matched by shape or
  /// order. A small value means that the trace is of another program.
  double shown() const;
};

/// Kernels or tasks of one name that could not be matched. Lists are ordered by time, descending.
struct Leftover {
  std::string name;
  std::int64_t count = 0;
  Seconds time;
  std::string why;
};
std::vector<Leftover> unmatched_kernels(const Trace& trace, const Match& match);
/// Tasks without a kernel, one entry per block and task; times are the model's.
std::vector<Leftover> unmatched_tasks(const program::Program& program, const Match& match);

using TimeOf = std::function<Seconds(const program::Task&)>;

/// \param names  must outlive the result.
/// \param rank  the rank that was traced; determines the role.
/// \pre the Program is verified; 0 <= rank < program.ranks().
Match match(const program::Program& program, std::int32_t rank, const Trace& trace,
            const KernelNames& names, const TimeOf& expected);

}  // namespace foreshard::profile
