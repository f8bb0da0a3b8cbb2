/// \file
/// Facts about this host for a measurement, and the core that this process is bound to.
#pragma once

#include <map>
#include <string>

#include "base/units.h"

namespace foreshard::replay::host {

std::string host_name();

/// Facts about the machine; keys are "processor", "cores", "cache per core", "kernel", "blas" ...
std::map<std::string, std::string> host_facts();

/// Binds this process to one core, unless it is already bound to fewer cores than the machine has,
/// or the job has more processes than there are cores (then binding gains nothing).
/// \pre local_rank < local_ranks
void bind_to_core(int local_rank, int local_ranks);

/// The cores to which this process is bound, as text: "core 3", "cores 0, 1".
std::string cores_bound_to();
/// Number of cores to which this process is bound, and number of cores of the host.
int core_count();
int cores_of_host();

/// Makes BLAS use a single thread.
void use_one_thread();

/// From here on, this thread treats subnormal numbers as zero. Arithmetic on them can take a
/// hundred times as long, which would distort the kernels' times.
void flush_subnormal_numbers();

}  // namespace foreshard::replay::host
