/// \file
/// The table of operators, as Markdown for people and as JSON for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace foreshard::cli {

/// The table as Markdown, with a section for each operator: its rule (for small example shapes if
/// it has a single shape) and its settings.
std::string operators_markdown();
/// [{"name", "doc", "inputs", "outputs", "differentiable", "view", "bodies", "settings": [...]}]
nlohmann::ordered_json operators_json();

}  // namespace foreshard::cli
