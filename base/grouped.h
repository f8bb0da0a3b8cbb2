/// \file
/// Counts as people read them: "12,288".
#pragma once

#include <cstdint>
#include <string>

namespace foreshard {

/// The number with a comma before every three digits.
std::string grouped(std::int64_t number);

}  // namespace foreshard
