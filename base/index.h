/// \file
/// `at(i)`: a signed index as the subscript of a container. Indices are signed where -1 stands for
/// none or where they are compared with counts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace foreshard {

/// \pre index >= 0
constexpr std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

}  // namespace foreshard
