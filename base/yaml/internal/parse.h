/// \file
/// Text to `Node`: the only use of yaml-cpp, whose exceptions end here.
#pragma once

#include <cstddef>
#include <optional>

#include "base/yaml/internal/diagnostics.h"
#include "base/yaml/internal/node.h"
#include "base/yaml/internal/sources.h"

namespace foreshard::yaml::internal {

/// The document in `sources[source]`, or nothing with a diagnostic. Duplicate and merge keys are
/// diagnosed too, but the document is still returned.
/// \param most_values  aliases expanded.
std::optional<Node> parse(const Sources& sources, int source, std::size_t most_values,
                          Diagnostics& diagnostics);

}  // namespace foreshard::yaml::internal
