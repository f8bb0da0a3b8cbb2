/// \file
/// Matches the kernels of one step of a trace with the tasks of the Program, rule by rule
/// (match.h).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "validate/profile/match.h"

namespace foreshard::profile::internal {

/// Phase of a task or a kernel; empty: unknown.
using MaybePhase = std::optional<Phase>;

/// State that the rules share. Indices are into Trace::kernels and Match::tasks.
struct StepMatch {
  const program::Program& program;
  const Trace& trace;
  std::vector<std::size_t> kernels;         ///< Kernels of this step, ordered by start.
  std::vector<std::size_t> tasks;           ///< Tasks of this step, in the order of issue.
  std::vector<MaybePhase> phase_of;         ///< One per kernel of the trace.
  std::vector<MaybePhase> phase_of_task;    ///< One per task of the match.
  std::vector<std::int64_t> ranks_of_task;  ///< One per task: size of its group; 0: no group.
  Match& match;

  bool free(std::size_t kernel) const { return match.kernels[kernel] == MatchedBy::kNothing; }
  bool bare(std::size_t task) const { return match.tasks[task].by == MatchedBy::kNothing; }
  void give(std::size_t kernel, std::size_t task, MatchedBy by);
};

void match_by_shape(StepMatch& step);
void match_by_order(StepMatch& step);
void match_by_place(StepMatch& step);

}  // namespace foreshard::profile::internal
