/// \file
/// Runs a sweep in several processes (base/team/team.h): rank 0 hands out points.
///
///     rank 0 -> rank   point    N                             answered by key (of that point)
///                      wanted, or known (it is stored)        answered by outcome, in the form of
///                                                             text_of (Outcome); nothing
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/team/team.h"

#include "sim/sweep/evaluate.h"

namespace foreshard::sweep {

using team::Team;

/// Version, question and inputs of the first point. \return kIo as in common_work.
Result<team::Job> job_of(const Setup& setup);

/// Runs on a rank other than 0: does points until rank 0 says that all are done.
/// \return The errors of team::help; kIo if a file of the sweep cannot be read.
Status help(const Setup& setup, const Team& team, std::int64_t threads);

}  // namespace foreshard::sweep
