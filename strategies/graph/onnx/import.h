/// \file
/// Turns the contents of an ONNX file into a Graph of foreshard's operators.
///
///  - Floating-point tensors get the requested precision, whatever width the file has: that width
///    says how the model was exported, not how it is to be trained.
///  - Initializers of more than one floating-point element are parameters; running statistics of
///    batch norms and constants are not.
///  - Layer norms and GeLUs that exporters write in pieces are recognised and become one operator,
///    as every framework runs them.
///  - A loop runs as often as its count states; a condition takes its first branch with probability
///    1/2 where none is given.
///
/// Source: ONNX operator schemas up to opset 17 (github.com/onnx/onnx, docs/Operators.md), and the
/// differences of later versions (axes as inputs).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

#include "strategies/graph/graph.h"
#include "strategies/graph/onnx/model.h"

namespace foreshard::onnx_file {

struct ImportOptions {
  DType precision = DType::kBf16;
  bool training = true;  ///< Dropout exists only in training.
  /// Node of a condition -> probability of its first branch.
  std::map<std::string, double> probabilities{};
};

struct Imported {
  Graph graph{};
  std::int64_t batch = 1;  ///< First dimension of the first input.
  std::vector<std::string> remarks{};
};

/// \return kUnsupported for operators without a counterpart (the message names all of them, each
///     with a node); kInvalidInput if shapes do not go together.
Result<Imported> import_onnx(const Model& model, const ImportOptions& options);

/// The ONNX operators that can be imported, sorted.
std::vector<std::string> supported_operators();

}  // namespace foreshard::onnx_file
