/// \file
/// The definitions of the table, each in the file of its family.
#pragma once

#include "strategies/graph/operators/definition.h"

namespace foreshard::operators {

// contraction.cc
OperatorDefinition einsum();
OperatorDefinition matmul();
// elementwise.cc
OperatorDefinition binary();
OperatorDefinition cast();
OperatorDefinition dropout();
OperatorDefinition unary();
OperatorDefinition unary_gradient();
OperatorDefinition where();

}  // namespace foreshard::operators
