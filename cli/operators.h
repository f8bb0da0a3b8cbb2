/// \file
/// The table of operators for people and programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace foreshard::cli {

/// As Markdown: a section for each operator with its rule, for small example shapes where it has
/// one shape, and its settings.
std::string operators_markdown();
/// [{"name", "doc", "inputs", "outputs", "differentiable", "view", "bodies", "settings": [...]}]
nlohmann::ordered_json operators_json();

}  // namespace foreshard::cli
