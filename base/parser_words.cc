#include "base/parser_words.h"

namespace foreshard {

std::string parser_words(std::string_view what) {
  if (const auto end = what.find("] "); what.starts_with('[') && end != std::string_view::npos)
    what.remove_prefix(end + 2);
  constexpr std::string_view kParse = "parse error at ";
  if (what.starts_with(kParse)) what.remove_prefix(kParse.size());
  std::string words(what);
  constexpr std::string_view kSyntax = "syntax error while parsing ";
  const auto begin = words.find(kSyntax);
  const auto dash = begin == std::string::npos ? begin : words.find(" - ", begin);
  if (dash != std::string::npos) words.erase(begin, dash + 3 - begin);
  constexpr std::size_t kMost = 160;
  return words.size() > kMost ? words.substr(0, kMost) + "..." : words;
}

}  // namespace foreshard
