/// \file
/// Runs the points of a sweep with several threads, stores them as they are done, and stops when
/// time is over. Results do not depend on which thread did what, or when.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"
#include "base/team/team.h"

#include "sim/sweep/evaluate.h"
#include "sim/sweep/results.h"
#include "sim/sweep/store.h"

namespace foreshard::sweep {

// Runs a sweep in several processes (base/team/team.h): rank 0 hands out points.
//
//     rank 0 -> rank   point    N                             answered by key (of that point)
//                      wanted, or known (it is stored)        answered by outcome, in the form of
//                                                             text_of (Outcome); nothing

using team::Team;

/// Version, question and inputs of the first point. \return kIo as in common_work.
Result<team::Job> job_of(const Setup& setup);

/// Runs on a rank other than 0: does points until rank 0 says that all are done.
/// \return The errors of team::help; kIo if a file of the sweep cannot be read.
Status help(const Setup& setup, const Team& team, std::int64_t threads);

/// Part `part` of `parts` of a sweep: every `parts`-th point, from point `part` - 1 on.
struct Shard {
  std::int64_t part = 1;
  std::int64_t parts = 1;
};
/// Reads "2/8". \return kInvalidInput for anything but 1 <= part <= parts.
Result<Shard> parse_shard(std::string_view text);

struct RunOptions {
  std::int64_t threads = 1;
  Shard shard = {};
  Store* store = nullptr;  ///< May be null: nothing is stored.
  /// Asked before a point is begun, from any thread: whether to begin no more points. May be empty.
  /// Points that have begun are finished.
  std::function<bool()> out_of_time = {};
  /// Called when points are done, one call at a time. May be empty.
  std::function<void()> progress = {};
  const Team* team = nullptr;  ///< Set on rank 0 of several; null: alone.
};

struct RunResult {
  Results results;  ///< Outcomes, including stored ones of points that this run did not reach.
  std::int64_t computed = 0;
  std::int64_t known = 0;     ///< Number of points that were in the store before.
  std::int64_t repeated = 0;  ///< Number of points with the same key as another computed one.
  bool partial = false;       ///< Whether points of the shard are not done.
};

/// \return kIo if a file of the sweep cannot be read, or the store cannot be written to (its
///     content stays); kInvalidInput if no point makes a study, with the first point's fault.
Result<RunResult> run_sweep(const Setup& setup, const RunOptions& options);

}  // namespace foreshard::sweep
