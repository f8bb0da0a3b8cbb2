/// \file
/// A search by several processes (base/team/team.h): rank 0 lists and estimates strategies, and
/// hands out to the others those that are to be simulated.
///
///     rank 0 -> rank   simulate   place (its number), strategy (in YAML)    answered by
///                                 found (numbers), or fault (why it cannot be simulated)
///
/// The strategies that are simulated do not depend on the number of ranks, so the answer is the
/// same as from one process.
#pragma once

#include <cstdint>
#include <string>

#include "base/team/team.h"

#include "sim/study/study.h"

namespace foreshard::search {

/// Identifies the search for all ranks: the version, all that the study says, and the names and
/// bytes of its files.
team::Job job_of(const study::LoadedStudy& study, const std::string& version);

/// Runs a rank other than 0: it simulates the strategies that it is given until rank 0 has its
/// answer.
/// \return errors of team::help; kInvalidInput where the cluster cannot be built.
Status help(const study::LoadedStudy& study, const team::Team& team, const std::string& version,
            std::int64_t threads);

}  // namespace foreshard::search
