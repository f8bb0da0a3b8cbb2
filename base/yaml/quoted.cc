// Double quotes and escapes of YAML, for writers of YAML and for error messages that suggest a
// line.
#include "base/yaml/quoted.h"

namespace foreshard::yaml {

std::string quoted(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else if (code < ' ' || code == 0x7f) {
      result += "\\x";
      result += kDigits[code / 16];
      result += kDigits[code % 16];
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace foreshard::yaml
