/// \file
/// What a JSON text is, by the keys of its first object: tells formats apart before a parser that
/// knows one of them reads the whole text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard {

/// The keys of the first object in the text, in order and as written, those of objects inside of it
/// left out. Of a long text, or one that is cut off, what `most_bytes` hold.
std::vector<std::string> first_object_keys(std::string_view text,
                                           std::size_t most_bytes = std::size_t{1} << 20);

}  // namespace foreshard
