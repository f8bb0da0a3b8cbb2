/// \file
/// The kernels of one step of a trace and the tasks of the Program, matched rule by rule (match.h).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "validate/profile/match.h"

namespace foreshard::profile::internal {

/// Of a task or a kernel: its phase, where it is known.
using MaybePhase = std::optional<Phase>;

/// What the rules share. Indices are into Trace::kernels and Match::tasks.
struct StepMatch {
  const program::Program& program;
  const Trace& trace;
  std::vector<std::size_t> kernels;         ///< Of this step, by start.
  std::vector<std::size_t> tasks;           ///< Likewise, in the order of issue.
  std::vector<MaybePhase> phase_of;         ///< By kernel of the trace.
  std::vector<MaybePhase> phase_of_task;    ///< By task of the match.
  std::vector<std::int64_t> ranks_of_task;  ///< Likewise: of a communication's group.
  Match& match;

  bool free(std::size_t kernel) const { return match.kernels[kernel] == MatchedBy::kNothing; }
  bool bare(std::size_t task) const { return match.tasks[task].by == MatchedBy::kNothing; }
  void give(std::size_t kernel, std::size_t task, MatchedBy by);
};

void match_by_shape(StepMatch& step);
void match_by_order(StepMatch& step);
void match_by_place(StepMatch& step);

}  // namespace foreshard::profile::internal
