#include "base/printable.h"

#include <algorithm>

namespace foreshard {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

bool is_harmless(char32_t code) {
  if (code == '\n' || code == '\t') return true;
  const bool is_control = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool turns = (code >= 0x200E && code <= 0x200F) || (code >= 0x202A && code <= 0x202E) ||
                     (code >= 0x2066 && code <= 0x2069);
  return !is_control && !turns;
}

std::string escaped(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 0xFU]};
  }
  return text;
}

// The length of a sequence at the begin of `text` that chooses a colour; 0 if there is none.
std::size_t colour_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

std::string printable_line(std::string_view line, std::size_t longest, bool colours) {
  std::string text;
  while (!line.empty()) {
    if (text.size() >= longest)
      return text + "... (" + std::to_string(line.size()) + " more bytes)";
    if (const std::size_t length = colours ? colour_length(line) : 0; length > 0) {
      text += line.substr(0, length);
      line.remove_prefix(length);
      continue;
    }
    const Character first = first_character(line);
    const auto bytes = line.substr(0, std::max<std::size_t>(first.bytes, 1));
    text += first.bytes > 0 && is_harmless(first.code) ? std::string(bytes) : escaped(bytes);
    line.remove_prefix(bytes.size());
  }
  return text;
}

}  // namespace

Character first_character(std::string_view text) {
  const unsigned char lead = byte_at(text, 0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  char32_t code = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const unsigned char next = byte_at(text, i);
    if ((next & 0xC0U) != 0x80) return {};
    code = code << 6U | (next & 0x3FU);
  }
  return {code, bytes};
}

std::string printable(std::string_view text, std::size_t longest, bool colours) {
  std::string all;
  while (true) {
    const std::size_t end = text.find('\n');
    all += printable_line(text.substr(0, end), longest, colours);
    if (end == std::string_view::npos) return all;
    all += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace foreshard
