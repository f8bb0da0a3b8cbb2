/// \file
/// Arithmetic on counts of rows, tiles and operations.
#pragma once

#include <cstdint>

namespace foreshard::compute {

inline double count(std::int64_t n) {
  return static_cast<double>(n);
}
/// Number of pieces of size `part` that cover `whole`.
inline std::int64_t parts(std::int64_t whole, std::int64_t part) {
  return (whole + part - 1) / part;
}

}  // namespace foreshard::compute
