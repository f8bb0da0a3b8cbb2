/// \file
/// Functions that model.cc, model_faults.cc and model_layers.cc share.
#pragma once

#include <string>

#include "strategies/graph/model.h"

namespace foreshard::internal {

/// Whether a layer has one branch, with one norm: only attention, Mamba, a feed-forward layer or
/// experts.
bool has_one_branch(LayerKind kind);

/// What is wrong with the pattern of a model, with keys that the pattern needs, or with keys that
/// have no effect beside it; empty if nothing is.
std::string pattern_fault(const Model& model);

}  // namespace foreshard::internal
