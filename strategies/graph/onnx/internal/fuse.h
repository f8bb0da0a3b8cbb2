/// \file
/// Fuses operators that exporters write in pieces and frameworks run as one kernel.
///
///     layer norm: (x - mean(x)) / sqrt(mean((x - mean(x))^2) + e) * scale + shift
///     GeLU:       x * (1 + erf(x / sqrt(2))) / 2, in any order of the factors
#pragma once

#include <cstdint>

#include "strategies/graph/onnx/model.h"

namespace foreshard::onnx_file {

struct Fused {
  std::int64_t norms = 0;
  std::int64_t gelus = 0;
};

/// Replaces the pieces by nodes LayerNormalization and Gelu, if nothing else reads the values
/// between them.
/// \return the number of nodes of each kind.
Fused fuse(Model& model);

}  // namespace foreshard::onnx_file
