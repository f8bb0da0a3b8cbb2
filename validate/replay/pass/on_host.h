/// \file
/// A pass on one core: what the host executor runs, and what the GPU's kernels are checked against.
#pragma once

#include <span>

#include "strategies/program/ir/kernel.h"

namespace foreshard::replay {

/// `arrays` as arrays_of says. A pass without rows does nothing.
void run_on_host(const Pass& pass, std::span<void* const> arrays);

}  // namespace foreshard::replay
