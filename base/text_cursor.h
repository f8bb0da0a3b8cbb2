/// \file
/// Reads a one-line notation from left to right and reports where it fails. The notations of
/// layouts (strategies/graph/layout.cc) and of tensors to reshard (strategies/reshard/plan.cc) are
/// parsed with it:
///
///     layout: expected ']' or ',', found 'x'
///       tp=4 [tp x]
///                ^
#pragma once

#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foreshard {

/// A position in a text. Every function that looks at the text first skips white space.
class TextCursor {
 public:
  /// \param what  what the text is; each message begins with it: "layout".
  /// \pre The characters of both strings outlive the cursor.
  TextCursor(std::string_view what, std::string_view text) : what_(what), text_(text) {}

  /// Skips white space and returns the position: a byte offset into the text.
  std::size_t place() {
    while (at_ < text_.size() && std::isspace(byte(at_)) != 0) ++at_;
    return at_;
  }
  bool at_end() { return place() == text_.size(); }
  /// Whether `c` is next. It is not consumed.
  bool sees(char c) { return !at_end() && text_[at_] == c; }
  /// Consumes `c` if it is next, and returns whether it was.
  bool take(char c) {
    if (!sees(c)) return false;
    ++at_;
    return true;
  }

  /// Consumes a name: letters, digits and underscores, and after the first character also dots and
  /// primes ('). It does not begin with a digit. Empty if no name is next.
  std::optional<std::string> name() {
    place();
    const std::size_t begin = at_;
    if (at_ < text_.size() && std::isdigit(byte(at_)) != 0) return std::nullopt;
    while (at_ < text_.size() && (std::isalnum(byte(at_)) != 0 || text_[at_] == '_' ||
                                  (at_ > begin && (text_[at_] == '.' || text_[at_] == '\''))))
      ++at_;
    if (at_ == begin) return std::nullopt;
    return std::string(text_.substr(begin, at_ - begin));
  }
  /// Consumes a whole number without sign. Empty if no number is next, or if it exceeds 64 bits.
  std::optional<std::int64_t> number() {
    place();
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, fault] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (fault != std::errc{} || *begin == '-') return std::nullopt;
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  /// A message that shows the text with a mark at `place`. Unprintable bytes are shown as '?'.
  /// \pre place <= the length of the text
  Error error(std::size_t place, const std::string& why) const {
    // The message shows at most kShown bytes of the line, from half as many before the place on.
    constexpr std::size_t kShown = 100;
    const std::size_t from = place > kShown / 2 ? place - kShown / 2 : 0;
    std::string line(text_.substr(from, kShown));
    for (char& c : line)
      if (std::isprint(static_cast<unsigned char>(c)) == 0) c = '?';
    return {Error::Code::kInvalidInput, std::string(what_) + ": " + why + "\n  " + line + "\n  " +
                                            std::string(place - from, ' ') + "^"};
  }
  /// The message that `wanted` was expected at the current position, with what is there instead.
  Error expected(const std::string& wanted) {
    const std::size_t here = place();
    if (here == text_.size()) return error(here, "expected " + wanted + ", but it ends here");
    const char c = text_[here];
    const std::string found =
        std::isprint(static_cast<unsigned char>(c)) != 0 ? std::string(1, c) : "?";
    return error(here, "expected " + wanted + ", found '" + found + "'");
  }

 private:
  int byte(std::size_t i) const { return static_cast<unsigned char>(text_[i]); }

  std::string_view what_;
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace foreshard
