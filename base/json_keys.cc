#include "base/json_keys.h"

#include <algorithm>

namespace foreshard {

std::vector<std::string> first_object_keys(std::string_view text, std::size_t most_bytes) {
  std::vector<std::string> keys;
  const std::size_t start = text.find('{');
  if (start == std::string_view::npos) return keys;
  text = text.substr(start, most_bytes);
  std::size_t depth = 0;
  bool before_key = true;  // In the first object: after its brace or a comma.
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      const std::size_t begin = ++i;
      while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
      if (i >= text.size()) break;
      if (depth == 1 && before_key) keys.emplace_back(text.substr(begin, i - begin));
      before_key = false;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth <= 1) break;
      --depth;
    } else if (c == ',' && depth == 1) {
      before_key = true;
    }
  }
  return keys;
}

}  // namespace foreshard
