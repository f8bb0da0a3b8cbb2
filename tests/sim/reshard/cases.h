/// \file
/// Named conversions on two nodes of eight devices (ranks 0 to 15), and random ones.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "strategies/reshard/plan.h"

namespace foreshard::reshard {

struct Case {
  std::string name;
  TensorSpec tensor{};
  Layout from{};
  Layout to{};
  double ratio = 2;  ///< How many times faster than gather and slice it has to be on two DGX H100.
};

/// A tensor whose dimensions lie over `dims` of a mesh of `axes`, on ranks from `first` on.
Layout on(std::vector<MeshAxis> axes, std::vector<std::vector<Axis>> dims, std::int32_t first = 0);

/// What training runs into: other splits, other groups, other ranks.
std::vector<Case> named_cases();

/// Any conversion that can be written down on `ranks` ranks: meshes of one to three axes on some of
/// them, even and uneven, at times partial.
Case random_case(std::mt19937& random, std::int32_t ranks);

}  // namespace foreshard::reshard
