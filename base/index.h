/// \file
/// `at(i)`: a signed index as the subscript of a container; nothing is checked. Here an index is
/// signed where -1 means none, or where it is compared with counts, which are signed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace foreshard {

/// \pre index >= 0 (else the result is far beyond any container)
constexpr std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

}  // namespace foreshard
