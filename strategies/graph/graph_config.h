/// \file
/// A graph in foreshard's own YAML: tensors, and operators of the table between them.
///
///     name: mlp
///     mesh: [{name: data, size: 2}, {name: tensor, size: 4}]
///     tensors:
///       - {name: x, dtype: bf16, shape: [32, 1024], role: input, dims: [data, "-"]}
///       - {name: up, dtype: bf16, shape: [1024, 4096], role: parameter, dims: ["-", tensor]}
///     operators:
///       - {op: matmul, name: h, inputs: [x, up]}
///       - {op: unary, name: y, inputs: [h], settings: {operation: gelu}}
///     outputs: [y]
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"
#include "base/yaml/table.h"
#include "base/yaml/words.h"

#include "strategies/graph/graph.h"

namespace foreshard {

enum class GraphTensorRole : std::uint8_t { kInput, kParameter, kFrozen, kTable, kActivation };
const yaml::Names<GraphTensorRole>& yaml_names(const GraphTensorRole*);

struct GraphAxis {
  std::string name;
  std::int64_t size = 1;
};
const yaml::Table<GraphAxis>& yaml_table(const GraphAxis*);

struct GraphTensor {
  std::string name;
  GraphTensorRole role = GraphTensorRole::kActivation;
  std::string dtype{};  ///< Optional for an activation; must then be what its operator makes.
  std::optional<std::vector<std::int64_t>> shape{};
  /// Per dimension "-", or axes, major to minor, joined by '+'; with unequal slices
  /// "tensor{3,3,2,2}" (layout.h). Empty: not annotated.
  std::vector<std::string> dims{};
  std::vector<std::string> partial{};  ///< Axes over which the tensor is left as summands.
  std::vector<std::int64_t> open{};    ///< Dimensions that propagation may split further.
};
const yaml::Table<GraphTensor>& yaml_table(const GraphTensor*);

struct GraphConfig;

struct GraphOperator {
  std::string op;
  std::string name{};
  std::vector<std::string> inputs;
  std::vector<std::string> outputs{};
  std::map<std::string, yaml::Words> settings{};
  std::vector<GraphConfig> bodies;
};
const yaml::Table<GraphOperator>& yaml_table(const GraphOperator*);

struct GraphConfig {
  std::string name;
  std::string doc{};
  std::vector<GraphAxis> mesh{};
  std::vector<GraphTensor> tensors;
  std::vector<GraphOperator> operators;
  std::vector<std::string> outputs;
};
const yaml::Table<GraphConfig>& yaml_table(const GraphConfig*);

/// The mesh that the file names.
std::vector<MeshAxis> mesh_of(const GraphConfig& config);

/// Builds the graph, with annotations over the axes of `mesh`.
/// \param at  path of the graph in the document that `loader` has read; empty for a file of its
///     own.
/// \return kInvalidInput with place, line and caret: unknown operators (with the nearest name) and
///     settings, tensors that nothing makes or that are made twice, shapes that do not go together
///     or differ from their declaration, annotations that the tensor cannot have.
Result<Graph> build_graph(const GraphConfig& config, const std::vector<MeshAxis>& mesh,
                          const yaml::Loader& loader, const std::string& at = {});

}  // namespace foreshard
