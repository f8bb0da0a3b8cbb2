/// \file
/// What model.cc, model_faults.cc and model_layers.cc share.
#pragma once

#include <string>

#include "strategies/graph/model.h"

namespace foreshard::internal {

/// Whether a layer is attention, a Mamba layer, a feed-forward layer or experts alone, with one
/// norm.
bool has_one_branch(LayerKind kind);

/// What is wrong about the pattern of a model, about what it needs beside it, or about keys that
/// have no meaning then; empty if nothing is.
std::string pattern_fault(const Model& model);

}  // namespace foreshard::internal
