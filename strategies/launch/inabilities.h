/// \file
/// All that a strategy's framework cannot run of it, where abilities.h has the first.
#pragma once

#include <vector>

#include "strategies/launch/abilities.h"

namespace foreshard::launch {

/// In the order in which they are looked for. \return nothing where the framework can run all.
std::vector<Inability> inabilities_in(const Strategy& strategy, const Model& model);

}  // namespace foreshard::launch
