/// \file
/// The ways to split one operator over a mesh (R3.5): any factor of its rule by any axis, or not.
/// Each way says how all operands must lie (`Signature`), what comes out as summands included.
#pragma once

#include <vector>

#include "base/result.h"

#include "strategies/graph/distribute.h"

namespace foreshard {

/// Every way, nothing split first; axes of one rank split nothing, several axes of one factor stand
/// in the mesh's order. Left out: what some operand cannot express (a minor factor of a dimension
/// whose major one is not split to the last).
/// Cost: O((factors + 1) ^ axes).
std::vector<Splits> legal_splits(const Rule& rule, const std::vector<MeshAxis>& mesh);

/// \pre `splits` is one of legal_splits(rule, mesh).
Signature signature_of(const Rule& rule, const Splits& splits, const std::vector<MeshAxis>& mesh);

/// Whether an operator of that rule can be split so.
bool is_legal(const Rule& rule, const Splits& splits, const std::vector<MeshAxis>& mesh);

}  // namespace foreshard
