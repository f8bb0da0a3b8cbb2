/// \file
/// Numbers in what sources write.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace foreshard::accuracy {

/// The whole number right behind the first `word`; nothing without one.
std::optional<std::int64_t> number_after(std::string_view text, std::string_view word);

}  // namespace foreshard::accuracy
