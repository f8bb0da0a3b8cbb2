/// \file
/// Small uses of every operator of the table, for the tests that walk it.
#pragma once

#include <string>
#include <vector>

#include "strategies/graph/operators/build.h"

namespace foreshard {

struct Example {
  std::string type;
  std::vector<TensorType> inputs;
  Settings settings{};
  std::vector<Graph> bodies{};
};

/// At least one for each operator, by name.
std::vector<Example> operator_examples();

/// A graph of the example alone; its operands are inputs, named in0, in1, ...
Graph graph_of(const Example& example);

}  // namespace foreshard
