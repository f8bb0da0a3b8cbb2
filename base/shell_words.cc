#include "base/shell_words.h"

#include <algorithm>
#include <utility>

namespace foreshard {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

class Cutter {
 public:
  explicit Cutter(std::string_view text) : text_(text) {}

  Result<std::vector<std::string>> run() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quote_ != 0) {
        inside_quotes(c);
      } else if (c == '"' || c == '\'') {
        quote_ = c;
        begun_ = true;
      } else if (c == '\\') {
        take_next();
      } else if (c == '$' && takes_arithmetic()) {
        continue;
      } else if (is_blank(c)) {
        end_word();
      } else if (c == '#' && !begun_) {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else {
        put(c);
      }
    }
    if (quote_ != 0)
      return Error{Error::Code::kInvalidInput,
                   std::string("the quote ") + quote_ + " is not closed in: " + std::string(text_)};
    end_word();
    return std::move(words_);
  }

 private:
  void put(char c) {
    word_ += c;
    begun_ = true;
  }

  // $(( A * B )) is one word, blanks and all.
  bool takes_arithmetic() {
    if (!text_.substr(at_).starts_with("$((")) return false;
    constexpr std::size_t kLongest = 1000;
    int open = 0;
    for (std::size_t end = at_ + 1; end < std::min(text_.size(), at_ + kLongest); ++end) {
      open += text_[end] == '(' ? 1 : text_[end] == ')' ? -1 : 0;
      if (open > 0) continue;
      for (; at_ <= end; ++at_) put(text_[at_]);
      --at_;
      return true;
    }
    return false;
  }

  void inside_quotes(char c) {
    constexpr std::string_view kEscapable = "\"\\$`\n";
    const bool escapes = c == '\\' && quote_ == '"' && at_ + 1 < text_.size() &&
                         kEscapable.find(text_[at_ + 1]) != std::string_view::npos;
    if (c == quote_) {
      quote_ = 0;
    } else if (escapes) {
      take_next();
    } else {
      put(c);
    }
  }

  // Takes the character after a backslash; a line end joins two lines.
  void take_next() {
    if (at_ + 1 == text_.size()) return;
    ++at_;
    if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
    if (text_[at_] != '\n') put(text_[at_]);
  }

  void end_word() {
    if (begun_) words_.push_back(std::exchange(word_, {}));
    begun_ = false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string> words_;
  std::string word_;
  bool begun_ = false;
  char quote_ = 0;
};

}  // namespace

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,=+-";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

Result<std::vector<std::string>> shell_words(std::string_view text) {
  return Cutter(text).run();
}

}  // namespace foreshard
