/// \file
/// All inabilities of a strategy's framework; abilities.h has a function for the first one.
#pragma once

#include <vector>

#include "strategies/launch/abilities.h"

namespace foreshard::launch {

/// All inabilities, in the order in which they are looked for; empty where the framework can run
/// all of the strategy.
std::vector<Inability> inabilities_in(const Strategy& strategy, const Model& model);

}  // namespace foreshard::launch
