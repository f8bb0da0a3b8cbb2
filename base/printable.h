/// \file
/// Texts from outside on a terminal: the one place where they are made harmless.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace foreshard {

/// A character of UTF-8.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;  ///< 0: no UTF-8.
};

/// The first character of a text that is not empty.
Character first_character(std::string_view text);

/// How much of a line a message shows.
inline constexpr std::size_t kLongestLine = 4000;

/// `text` with everything that a terminal would obey, or cannot show, written as "\x1b": control
/// characters except line breaks and tabs, characters that turn the direction of writing, and bytes
/// that are not UTF-8. A line longer than `longest` bytes is cut, and its other bytes are counted.
/// \param colours  whether sequences that choose a colour ("\x1b[1m") stay.
std::string printable(std::string_view text, std::size_t longest = kLongestLine,
                      bool colours = false);

}  // namespace foreshard
