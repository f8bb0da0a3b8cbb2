/// \file
/// The ways to split one operator over a mesh (R3.5): each axis splits one factor of its rule, or
/// none. Each way determines how all operands lie (`Signature`), including which outputs are
/// summands.
#pragma once

#include <vector>

#include "base/result.h"

#include "strategies/graph/distribute.h"

namespace foreshard {

/// All ways to split, the unsplit one first. Axes of one rank split nothing; several axes of one
/// factor come in the mesh's order. Ways that some operand cannot express are left out (the minor
/// factor of a dimension is split, but its major factor not completely).
/// Cost: O((factors + 1) ^ axes).
std::vector<Splits> legal_splits(const Rule& rule, const std::vector<MeshAxis>& mesh);

/// \pre `splits` is one of legal_splits(rule, mesh).
Signature signature_of(const Rule& rule, const Splits& splits, const std::vector<MeshAxis>& mesh);

/// Whether an operator of that rule can be split as `splits` says.
bool is_legal(const Rule& rule, const Splits& splits, const std::vector<MeshAxis>& mesh);

}  // namespace foreshard
