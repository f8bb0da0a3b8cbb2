/// \file
/// Finds numbers in the text of notes and cells. Used by setting.cc, memory_savers.cc and parts.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace foreshard::accuracy {

/// The whole number that directly follows the first `word` in `text`; nothing if there is none.
std::optional<std::int64_t> number_after(std::string_view text, std::string_view word);

}  // namespace foreshard::accuracy
