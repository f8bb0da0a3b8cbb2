/// \file
/// What a strategy offloads, for people.
#pragma once

#include <string>

#include "strategies/parallelism/strategy.h"

namespace foreshard {

/// "activations of 4 layers offloaded, optimizer on the CPU"; empty where nothing is.
std::string words_of_offloading(const Strategy& strategy);

}  // namespace foreshard
