/// \file
/// Bytes as text, for JSON and HTML.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace foreshard {

/// `bytes` in base64 (RFC 4648, section 4), without line breaks.
std::string base64(std::string_view bytes);

/// The bytes that `text` stands for; nothing if it is no base64 or has line breaks.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace foreshard
