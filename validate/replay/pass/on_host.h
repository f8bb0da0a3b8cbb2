/// \file
/// A pass on one core. The host executor runs it, and the GPU's kernels are checked against it.
#pragma once

#include <span>

#include "strategies/program/ir/kernel.h"

namespace foreshard::replay {

/// Runs a pass; a pass without rows does nothing.
/// \param arrays  in the order of arrays_of.
void run_on_host(const Pass& pass, std::span<void* const> arrays);

}  // namespace foreshard::replay
