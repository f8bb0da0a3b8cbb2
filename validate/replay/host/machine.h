/// \file
/// Facts about this host for a measurement, and the core that this process is bound to.
#pragma once

#include <map>
#include <string>

#include "base/units.h"

namespace foreshard::replay::host {

std::string host_name();

/// "processor", "cores", "cache per core", "kernel", "blas" ...: what the machine tells.
std::map<std::string, std::string> host_facts();

/// Binds this process to one core, unless it is bound to fewer cores than the machine has, or
/// processes of the job outnumber cores: then nothing is gained.
/// \pre local_rank < local_ranks
void bind_to_core(int local_rank, int local_ranks);

/// "core 3", "cores 0, 1".
std::string cores_bound_to();
/// How many these are, and how many the host has.
int core_count();
int cores_of_host();

/// Makes BLAS use one thread, where it has several.
void use_one_thread();

/// Numbers too small to be normal are zero from here on, for this thread: arithmetic on them can
/// take a hundred times as long, which no kernel of a real step should show.
void flush_subnormal_numbers();

}  // namespace foreshard::replay::host
