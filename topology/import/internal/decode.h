/// \file
/// Texts as editors and shells save them: with a byte-order mark, or in UTF-16 (what `>` of Windows
/// PowerShell writes).
#pragma once

#include <string>
#include <string_view>

namespace foreshard::internal {

/// The text in UTF-8 without a byte-order mark. UTF-16 is known by its mark; what is no character
/// becomes U+FFFD. An XML declaration, which would name the old encoding, is blanked out.
std::string decoded(std::string_view text);

}  // namespace foreshard::internal
