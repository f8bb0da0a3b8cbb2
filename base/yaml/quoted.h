/// \file
/// Texts as YAML writes them: scalars and comments.
#pragma once

#include <string>
#include <string_view>

namespace foreshard::yaml {

/// A scalar in double quotes that reads back as exactly `text`.
std::string quoted(std::string_view text);

/// A line of comment, with its line break, whatever `text` is: what would end the line, or what a
/// terminal would obey, is escaped (base/printable.h).
std::string comment(std::string_view text);

}  // namespace foreshard::yaml
