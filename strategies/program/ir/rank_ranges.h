/// \file
/// Lists of ranks as text: "0-127", "0,8,9", "0-1016:8" (from 0 to 1016 in steps of 8), "7-0:-1".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foreshard::program {

/// The list as text. From the left, each range takes as many members as fit; fewer than three are
/// written one by one.
std::string write_ranges(const std::vector<std::int32_t>& list);

/// The inverse of write_ranges; it keeps the order.
/// \return kInvalidInput for other text, for a number of 2^31 or more, and for more than `limit`
///     members.
Result<std::vector<std::int32_t>> read_ranges(std::string_view text, std::size_t limit);

}  // namespace foreshard::program
