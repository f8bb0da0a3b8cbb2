/// \file
/// Pictures of what a prediction holds after `simulate --bundle`. Faults are thrown (numbers.h).
#pragma once

#include <string>

#include "sim/picture/internal/numbers.h"

namespace foreshard::picture {

std::string draw_passes(const Json& result);
/// The class with the least room.
std::string draw_memory_over_time(const Json& result);
std::string draw_fabric(const Json& result);

}  // namespace foreshard::picture
