/// \file
/// Splits a command line into words, as a shell does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foreshard {

/// The words of `text` by the rules of a POSIX shell: blanks and line ends separate words, quotes
/// hold a word together, a backslash makes the next character literal and joins lines, `#` at the
/// start of a word starts a comment, `$(( a * b ))` is one word. Nothing is expanded: "$x" stays
/// "$x".
/// \return kInvalidInput if a quote is not closed.
Result<std::vector<std::string>> shell_words(std::string_view text);

/// `text` as one word of a command line, in quotes where a shell would cut or change it.
std::string shell_word(std::string_view text);

}  // namespace foreshard
