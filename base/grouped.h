/// \file
/// Counts as people read them: "12,288".
#pragma once

#include <cstdint>
#include <string>

namespace foreshard {

/// With a comma before each three digits.
std::string grouped(std::int64_t number);

}  // namespace foreshard
