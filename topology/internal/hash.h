/// \file
/// Numbers that look random and are the same on every machine.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "base/hash.h"

namespace foreshard::internal {

/// A number in [0, 1) that depends on all of `keys` and their order.
constexpr double unit_hash(std::initializer_list<std::uint64_t> keys) {
  std::uint64_t state = 0;
  for (const auto key : keys) state = mixed(state ^ key);
  return static_cast<double>(state >> 11) * 0x1p-53;
}

}  // namespace foreshard::internal
