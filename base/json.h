/// \file
/// JSON from outside: the one parser of it, which holds the limits of base/limits.h.
///
///     FORESHARD_ASSIGN(const auto json, parsed_json(text));   // nlohmann::json
///
/// Refused are texts that are no JSON, keys that appear twice in an object, containers nested
/// deeper than limits::kDepth (the library's copies and destructors recurse), numbers beyond a
/// double, and more values than limits::kJsonValues of memory hold.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foreshard {

/// Called with each object and array below the root when it ends: how many containers are around
/// it (at least 1), and the root's key that it stands at or under ("" if the root is an array).
/// \return whether to keep the value; what is not kept takes no memory.
template <class Json>
using JsonFilter = std::function<bool(int depth, std::string_view root_key, Json& value)>;

/// The value of `text`; nlohmann::ordered_json keeps the order of keys. The caller includes
/// <nlohmann/json.hpp>. What `keep` throws passes through.
/// \return kInvalidInput with the place in the text: "no JSON: line 1, column 2: invalid literal".
template <class Json = nlohmann::json>
Result<Json> parsed_json(std::string_view text, const JsonFilter<Json>& keep = {});

/// The text at the key "schema" of the object in `text`; "" where there is none.
std::string schema_in(std::string_view text);

/// `what` of an exception of nlohmann::json in our words, shortened:
///
///     "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while
///     parsing value - invalid literal; last read: 'x'"
///
/// becomes "line 1, column 2: invalid literal; last read: 'x'", and
/// "[json.exception.type_error.302] type must be string, but is null" becomes "a value is null
/// instead of string".
std::string json_words(std::string_view what);

/// The keys of the first object in the text, which tell formats apart before a parser reads it:
/// they come in order and as written, without the keys of objects
/// inside of it. Only `most_bytes` from the start of the object are read; of a longer text, or one
/// that is cut off, later keys are missing.
std::vector<std::string> first_object_keys(std::string_view text,
                                           std::size_t most_bytes = std::size_t{1} << 20);

}  // namespace foreshard
