#include "topology/import/internal/decode.h"

#include <algorithm>
#include <cstdint>

namespace foreshard::internal {
namespace {

constexpr char32_t kReplacement = 0xfffd;

void append_utf8(char32_t code, std::string& text) {
  const auto rest = [&](int shift) { text += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | code >> 6);
    rest(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | code >> 12);
    rest(6);
    rest(0);
  } else {
    text += static_cast<char>(0xf0 | code >> 18);
    rest(12);
    rest(6);
    rest(0);
  }
}

/// \param low  the index of the less significant byte of a unit: 0 of little-endian text.
std::string from_utf16(std::string_view bytes, std::size_t low) {
  const auto unit = [&](std::size_t at) -> char32_t {
    const auto byte = [&](std::size_t i) {
      return static_cast<char32_t>(static_cast<unsigned char>(bytes[i]));
    };
    return byte(at + low) | byte(at + 1 - low) << 8;
  };
  std::string text;
  for (std::size_t at = 0; at + 1 < bytes.size(); at += 2) {
    char32_t code = unit(at);
    const bool first = code >= 0xd800 && code < 0xdc00;
    const char32_t next = first && at + 3 < bytes.size() ? unit(at + 2) : 0;
    if (next >= 0xdc00 && next < 0xe000) {
      code = 0x10000 + ((code - 0xd800) << 10) + (next - 0xdc00);
      at += 2;
    } else if (code >= 0xd800 && code < 0xe000) {
      code = kReplacement;
    }
    append_utf8(code, text);
  }
  return text;
}

}  // namespace

std::string decoded(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) return std::string(text.substr(3));
  const bool little = text.starts_with("\xff\xfe");
  if (!little && !text.starts_with("\xfe\xff")) return std::string(text);
  std::string result = from_utf16(text.substr(2), little ? 0 : 1);
  if (const auto end = result.find("?>"); result.starts_with("<?xml") && end != std::string::npos)
    std::replace_if(
        result.begin(), result.begin() + static_cast<std::ptrdiff_t>(end + 2),
        [](char c) { return c != '\n'; }, ' ');
  return result;
}

}  // namespace foreshard::internal
