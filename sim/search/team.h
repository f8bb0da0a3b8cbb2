/// \file
/// A search by several processes (base/team/team.h): rank 0 lists and estimates strategies, and
/// hands out those that it has simulated.
///
///     rank 0 -> rank   simulate   place (its number), strategy (in YAML)    answered by
///                                 found (numbers), or fault (why it cannot be simulated)
///
/// What is simulated does not depend on the ranks, so the answer is that of one process.
#pragma once

#include <cstdint>
#include <string>

#include "base/team/team.h"

#include "sim/study/study.h"

namespace foreshard::search {

/// The version and all that the study says; its files, by their names and bytes.
team::Job job_of(const study::LoadedStudy& study, const std::string& version);

/// Of a rank other than 0: simulates what it is given until rank 0 has its answer.
/// \return as team::help; kInvalidInput where the cluster cannot be built.
Status help(const study::LoadedStudy& study, const team::Team& team, const std::string& version,
            std::int64_t threads);

}  // namespace foreshard::search
