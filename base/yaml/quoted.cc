// Double quotes and escapes of YAML, for writers of YAML and for error messages that suggest a
// line.
#include "base/yaml/quoted.h"

#include <limits>

#include "base/printable.h"

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

std::string comment(std::string_view text) {
  std::string line = "# ";
  for (const char c : printable(text, std::numeric_limits<std::size_t>::max()))
    line += c == '\n' ? "\\n" : std::string(1, c);
  return line + '\n';
}

}  // namespace foreshard::yaml
