/// \file
/// Operands of kernels: normally distributed numbers, the same for one seed.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

namespace foreshard::replay::host {

using Floats = std::vector<float>;

inline Floats random_floats(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats out(count);
  for (float& x : out) x = normal(random);
  return out;
}

}  // namespace foreshard::replay::host
