/// \file
/// Random sound Programs.
#pragma once

#include <random>

#include "strategies/program/ir/program.h"

namespace foreshard::sim {

/// Stages of a pipeline that compute, talk among themselves, to each other and all together, on
/// random streams, in one global order (so that nothing can deadlock) with random dependencies.
/// \param has_host  ranks copy to and from the memory of their hosts, too.
program::Program random_program(std::mt19937& random, std::int64_t ranks, bool has_host = true);

}  // namespace foreshard::sim
