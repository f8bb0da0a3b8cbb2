/// \file
/// General graphs executed under their annotations and on one rank, in tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/oracle/graph.h"
#include "tests/oracle/random.h"
#include "tests/strategies/graph/operator_examples.h"

#include "strategies/graph/backward.h"
#include "strategies/graph/distribute.h"

namespace foreshard::execute {

/// Whole tensors, by id.
using Wholes = std::map<TensorId, std::vector<double>>;

/// Values for what no operator makes: positive, so that roots and logarithms have values; indices
/// below 4, which every example allows; sums of squares that are larger than squared sums.
inline std::vector<double> values_for(const Tensor& tensor) {
  const std::uint64_t key = key_of(7, tensor.name);
  const std::int64_t count = elements(tensor);
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const double random = uniform(key, i);
    if (tensor.dtype == DType::kInt32 || tensor.dtype == DType::kInt64) {
      values.push_back(std::floor(4 * random));
    } else if (tensor.dtype == DType::kInt8) {
      values.push_back(random < 0.5 ? 0 : 1);
    } else if (tensor.shape == std::vector<std::int64_t>{2, 6}) {  // statistics of 4 8x8 images
      values.push_back(256 * (i < 6 ? random : 2 + random));
    } else {
      values.push_back(0.5 + random);
    }
  }
  return values;
}

/// Runs the graph from `given` (what no operator makes; else values_for). Every tensor afterwards,
/// put together from its slices and summands.
inline Result<Wholes> executed_graph(const ShardedGraph& sharded, const Wholes& given = {}) {
  const Graph& graph = *sharded.graph;
  const ProcessMesh mesh = mesh_from(sharded.mesh);
  std::set<TensorId> made;
  for (const Operator& op : graph.operators) made.insert(op.outputs.begin(), op.outputs.end());
  Tensors tensors;
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const TensorId id{static_cast<std::int64_t>(i)};
    if (made.contains(id)) continue;
    const Layout layout{mesh, sharded.attributes[i]};
    const auto it = given.find(id);
    tensors[id] = {
        layout.attribute,
        scatter(layout, graph[id].shape, it == given.end() ? values_for(graph[id]) : it->second)};
  }
  FORESHARD_TRY(run(sharded, {.mesh = mesh, .context = {.key = 11}}, tensors));
  Wholes wholes;
  for (const auto& [id, tensor] : tensors) {
    const Layout layout{mesh, tensor.attribute};
    Shards<double> numbers = tensor.shards;  // one that is no number is unlike itself
    for (auto& values : numbers.of_position)
      for (double& x : values)
        if (std::isnan(x)) x = -12345;
    if (const auto why = disagreement(layout, graph[id].shape, numbers))
      return Error{Error::Code::kInvalidInput, graph[id].name + ": " + *why};
    wholes[id] = gather(layout, graph[id].shape, tensor.shards);
  }
  return wholes;
}

/// The graph without annotations: what one rank runs.
inline Graph unpinned(Graph graph) {
  for (Tensor& tensor : graph.tensors) tensor.pinned.reset();
  return graph;
}

struct GraphComparison {
  std::int64_t tensors = 0;
  std::int64_t skipped = 0;  ///< Elements that are no number, or noise, in the serial run.
  double worst = 0;
  std::string fault{};  ///< The first, in the order of the tensors.
};

/// Largest finite magnitude.
inline double magnitude(const std::vector<double>& values) {
  double largest = 0;
  for (const double x : values)
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  return largest;
}

/// What is left of operands that cancel is rounding, and so is what follows from it.
inline std::set<TensorId> rounding_noise(const Graph& graph, const Wholes& serial) {
  std::set<TensorId> noise;
  for (const Operator& op : graph.operators) {
    double operands = 0;
    bool noisy = false;
    for (const TensorId id : op.inputs) {
      operands = std::max(operands, magnitude(serial.at(id)));
      noisy = noisy || noise.contains(id);
    }
    for (const TensorId id : op.outputs) {
      const double largest = magnitude(serial.at(id));
      if (noisy || (largest > 0 && largest < 1e-9 * operands)) noise.insert(id);
    }
  }
  return noise;
}

/// Every tensor of both runs, relative to its largest value.
inline GraphComparison compare(const Graph& graph, const Wholes& serial, const Wholes& sharded,
                               double tolerance) {
  GraphComparison result;
  const std::set<TensorId> noise = rounding_noise(graph, serial);
  for (const auto& [id, expected] : serial) {
    if (noise.contains(id)) {
      result.skipped += static_cast<std::int64_t>(expected.size());
      continue;
    }
    ++result.tensors;
    const double largest = magnitude(expected);
    const double scale = largest > 0 ? largest : 1;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double value = sharded.at(id)[i];
      if (!std::isfinite(expected[i])) {
        ++result.skipped;
        continue;
      }
      const double difference = std::abs(value - expected[i]) / scale;
      if (!(difference <= tolerance) && result.fault.empty())
        result.fault = fmt::format("{} element {}: {} where the serial run has {}", graph[id].name,
                                   i, value, expected[i]);
      if (difference > result.worst) result.worst = difference;
    }
  }
  return result;
}

/// Examples of operators that are executed, and whose sharded form computes the same as one rank.
inline std::vector<Example> executable_examples() {
  std::vector<Example> examples;
  for (Example& example : operator_examples()) {
    const Graph graph = graph_of(example);
    const bool replica =
        example.settings.has("scope") && example.settings.text("scope") == "replica";
    if (can_compute(graph.operators.front()) && !replica) examples.push_back(std::move(example));
  }
  return examples;
}

}  // namespace foreshard::execute
