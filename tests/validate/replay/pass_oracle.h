/// \file
/// What passes compute, in plain loops and double precision, gradients by differences: written
/// apart from the product's own definition, which it tests.
#pragma once

#include <vector>

#include "strategies/program/ir/kernel.h"

namespace foreshard::replay {

using Arrays = std::vector<std::vector<double>>;

/// In place: `arrays` as arrays_of orders them, element by element. Of dropout the mask is read.
void compute(const Pass& pass, Arrays& arrays);

}  // namespace foreshard::replay
