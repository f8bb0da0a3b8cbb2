/// \file
/// Annotations of a general graph for data and tensor parallelism, where the user gives none, and
/// the user's own. distribute() (distribute.h) carries them to all other tensors.
///
///  1. The user's annotations come first: patterns over the names of parameters, inputs and
///     activations, the last that matches decides. Those of operators say over which axes an
///     operator splits the factors of its rule; its parameters follow.
///  2. Axis "data" splits the batch: the first dimension of every input that has the batch's size.
///  3. Axis "tensor" splits the parameters of contractions (matmul, convolution ...), in the order
///     of the graph. Where the input of one arrives split along the factor that is summed, the
///     parameter is split along that (by row: summands follow, to be reduced); else along its
///     output factor (by column). A table that is looked up (embedding) is split along its
///     rows, if it has at least as many as columns (types and positions stay whole). This finds the
///     pairs of Megatron-LM (Shoeybi et al. 2019) without knowing of layers.
///  4. A parameter whose dimension is not a multiple of the axis stays whole on every rank, and a
///     remark says so. What is smaller (biases, norms) follows by propagation.
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

/// How all tensors whose name matches are to lie, or all operators are to compute.
struct Annotation {
  std::string tensor{};             ///< '*' stands for any letters: "encoder.*.weight".
  std::vector<std::string> dims{};  ///< Per dimension "-" or axes, major to minor: "data+tensor".
  std::vector<std::string> partial{};  ///< Axes over which it is left as summands.
  std::string op{};                    ///< Instead of `tensor`: an operator, likewise.
  /// Of the operator: factor of its rule -> axes, major to minor. Those left out are whole.
  std::map<std::string, std::string> splits{};
};
const yaml::Table<Annotation>& yaml_table(const Annotation*);

struct AnnotateOptions {
  std::vector<Annotation> annotations{};
  std::int64_t batch = 1;     ///< Samples of a micro-batch, over all data-parallel ranks.
  std::string data = "data";  ///< Axes by name; those that the mesh lacks do nothing.
  std::string tensor = "tensor";
};

/// Pins tensors of `graph` (of bodies too). Tensors that are pinned already stay so.
/// \return remarks for people; kInvalidInput for a pattern that matches nothing or does not fit the
///     tensor's dimensions or the operator's factors, and for an axis that the mesh does not have.
Result<std::vector<std::string>> annotate(Graph& graph, const std::vector<MeshAxis>& mesh,
                                          const AnnotateOptions& options);

/// Whether `name` matches `pattern`, in which '*' stands for any letters, or none.
bool matches(std::string_view pattern, std::string_view name);

}  // namespace foreshard
