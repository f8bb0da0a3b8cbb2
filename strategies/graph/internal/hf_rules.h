/// \file
/// Reads what a model type says of a model into it: sizes, rules, classes, and its own code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "strategies/graph/hf_type.h"
#include "strategies/graph/internal/hf_keys.h"

namespace foreshard::internal {

/// Sizes and properties, but those of sequences and windows.
void read_type(HfKeys& keys, const HfType& type, Model& model);

/// What the type's `finish` names (hf_finish.cc).
void finish(HfKeys& keys, const HfType& type, Model& model);

/// What a file needs that foreshard does not model, each with the key that says so: "a mixture of
/// experts ('num_experts')". What models of `type` have is read, and not named.
/// \param type  nullptr: the catalogue has no such type.
/// \return empty if nothing is known of that kind.
std::vector<std::string> unmodelled_features(const HfKeys& keys, std::string_view model_type,
                                             const HfType* type);

}  // namespace foreshard::internal
