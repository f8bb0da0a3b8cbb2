/// \file
/// Identifies a JSON text by the keys of its first object: tells formats apart before a parser that
/// knows one of them reads the whole text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard {

/// The keys of the first object in the text, in order and as written, without the keys of objects
/// inside of it. Only `most_bytes` from the start of the object are read; of a longer text, or one
/// that is cut off, later keys are missing.
std::vector<std::string> first_object_keys(std::string_view text,
                                           std::size_t most_bytes = std::size_t{1} << 20);

}  // namespace foreshard
