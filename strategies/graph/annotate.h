/// \file
/// Annotations of a general graph: the user's own, and default ones for data and tensor parallelism
/// where the user gives none. distribute() (distribute.h) carries them to all other tensors.
///
///  1. The user's annotations come first. Each has a pattern over the names of parameters, inputs
///     and activations; the last one that matches decides. An annotation of an operator says over
///     which axes the factors of its rule are split; the operator's parameters follow.
///  2. Axis "data" splits the batch: the first dimension of every input that has the batch's size.
///  3. Axis "tensor" splits the parameters of contractions (matmul, convolution ...), in the order
///     of the graph. If the input arrives split along the factor that is summed, the parameter is
///     split along that factor (by row; the result is left as summands to reduce), else along its
///     output factor (by column). An embedding table is split along its rows if it has at least as
///     many rows as columns; smaller tables (token types, positions) stay whole. This finds the
///     pairs of Megatron-LM (Shoeybi et al. 2019) without knowledge of layers.
///  4. A parameter whose dimension is not a multiple of the axis stays whole on every rank, and a
///     remark says so. Smaller parameters (biases, norms) follow by propagation.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml/table.h"

#include "strategies/graph/graph.h"

namespace foreshard {

/// A layout for all tensors, or a split for all operators, whose name matches a pattern.
struct Annotation {
  std::string tensor{};             ///< Pattern; '*' matches any text: "encoder.*.weight".
  std::vector<std::string> dims{};  ///< Per dimension "-" or axes, major to minor: "data+tensor".
  std::vector<std::string> partial{};  ///< Axes over which the tensor is left as summands.
  std::string op{};                    ///< Pattern for an operator; used instead of `tensor`.
  /// Factor of the operator's rule -> axes that split it, major to minor. Absent factors stay
  /// whole.
  std::map<std::string, std::string> splits{};
};
const yaml::Table<Annotation>& yaml_table(const Annotation*);

struct AnnotateOptions {
  std::vector<Annotation> annotations{};
  std::int64_t batch = 1;     ///< Samples per micro-batch, over all data-parallel ranks.
  std::string data = "data";  ///< Axes by name; an axis that the mesh lacks is ignored.
  std::string tensor = "tensor";
};

/// Pins tensors of `graph` and of its bodies. Tensors that are pinned already keep their pins.
/// \return remarks for the user; kInvalidInput for a pattern that matches nothing or does not fit
///     the tensor's dimensions or the operator's factors, and for an axis that the mesh does not
///     have.
Result<std::vector<std::string>> annotate(Graph& graph, const std::vector<MeshAxis>& mesh,
                                          const AnnotateOptions& options);

/// Whether `name` matches `pattern`, in which '*' stands for any text, also none.
bool matches(std::string_view pattern, std::string_view name);

}  // namespace foreshard
