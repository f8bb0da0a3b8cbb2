/// \file
/// Random graphs of the table's operators, under random annotations.
#pragma once

#include "tests/strategies/graph/operator_examples.h"
#include "tests/test.h"

#include "strategies/graph/layout.h"

namespace foreshard {

/// Up to eight operators like those of `examples`. Operands are older tensors of the right type
/// where there are any.
inline Graph random_graph(const std::vector<Example>& examples, std::mt19937& random) {
  Graph graph{.name = "random", .tensors = {}, .operators = {}};
  const std::size_t count = 1 + random() % 8;
  for (std::size_t n = 0; n < count; ++n) {
    const Example& example = examples[random() % examples.size()];
    std::vector<TensorId> inputs;
    for (const TensorType& type : example.inputs) {
      std::vector<TensorId> fitting;
      for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
        const Tensor& tensor = graph.tensors[t];
        // Indices are given, so that they are in range.
        const bool index = type.dtype == DType::kInt32;
        if (tensor.dtype == type.dtype && tensor.shape == type.shape && !index)
          fitting.emplace_back(static_cast<std::int64_t>(t));
      }
      const std::string name = std::to_string(graph.tensors.size());
      if (!fitting.empty() && random() % 4 > 0) {
        inputs.push_back(fitting[random() % fitting.size()]);
      } else if (random() % 2 == 0 && type.dtype != DType::kInt32 && type.dtype != DType::kInt8) {
        inputs.push_back(add_parameter(graph, "p" + name, type));
      } else {
        inputs.push_back(add_input(graph, "x" + name, type));
      }
    }
    const auto outputs = value_of(add_operator(graph, {.type = example.type,
                                                       .name = "op" + std::to_string(n),
                                                       .inputs = inputs,
                                                       .settings = example.settings}));
    graph.outputs = outputs;
  }
  return graph;
}

/// Some tensors of the graph pinned at random and legal, now and then with slices of unequal size.
inline void annotate(Graph& graph, const std::vector<MeshAxis>& mesh, std::mt19937& random) {
  for (Tensor& tensor : graph.tensors) {
    if (random() % 3 > 0) continue;
    Attribute attribute = replicated(tensor.shape.size());
    for (Axis axis = 0; axis < static_cast<Axis>(mesh.size()); ++axis) {
      if (tensor.shape.empty() || random() % 2 == 0) continue;
      const std::size_t d = random() % tensor.shape.size();
      attribute.dims[d].push_back(axis);
      const std::int64_t parts = ways(attribute.dims[d], mesh);
      if (tensor.shape[d] % parts == 0 && random() % 8 > 0) continue;
      if (attribute.dims[d].size() > 1 || parts == 1) {
        attribute.dims[d].pop_back();
        continue;
      }
      // The first slice takes from the last.
      attribute.sizes.resize(tensor.shape.size());
      auto& sizes = attribute.sizes[d] = balanced_sizes(tensor.shape[d], parts);
      const std::int64_t moved = std::min<std::int64_t>(sizes.back(), 1);
      sizes.front() += moved;
      sizes.back() -= moved;
      break;
    }
    tensor.pinned = attribute;
    if (!tensor.shape.empty() && random() % 2 == 0) tensor.open = {0};
  }
}

}  // namespace foreshard
