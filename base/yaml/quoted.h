/// \file
/// Texts as YAML writes them.
#pragma once

#include <string>
#include <string_view>

namespace foreshard::yaml {

/// A scalar in double quotes that reads back as exactly `text`.
std::string quoted(std::string_view text);

}  // namespace foreshard::yaml
