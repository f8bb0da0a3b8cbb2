/// \file
/// SHA-256, for naming inputs and results by content.
#pragma once

#include <string>
#include <string_view>

namespace foreshard {

/// The digest of `bytes` in lower-case hexadecimal (64 characters). Source: FIPS 180-4.
std::string sha256(std::string_view bytes);

}  // namespace foreshard
