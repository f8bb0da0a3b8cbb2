/// \file
/// What a JSON parser says is wrong, for people.
#pragma once

#include <string>
#include <string_view>

namespace foreshard {

/// `what` of an exception of nlohmann::json without the library's own names for the fault:
///
///     "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while
///     parsing value - invalid literal; last read: 'x'"
///
/// becomes "line 1, column 2: invalid literal; last read: 'x'". Long texts are cut.
std::string parser_words(std::string_view what);

}  // namespace foreshard
