/// \file
/// What a search found, as a study: `found.json` is the first strategy of the JSON that
/// `foreshard search` wrote, `found.json#2` the second one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

#include "sim/search/explain.h"

namespace foreshard::cli {

/// A strategy of a search's result, as it is named on a command line.
struct FoundName {
  std::string path;
  std::int64_t number = 1;
  bool is_numbered = false;  ///< "#2" was given.
};
/// Of "found.json#2" the file and the number. What has no number behind a `#`, or names a file that
/// is there with it, is a path alone.
FoundName found_name(const std::string& name);

/// Whether the file that `name` names holds the JSON of a search.
bool holds_found(const std::string& name);

struct FoundStrategy {
  search::ReadResult result;
  std::size_t index = 0;  ///< Of the strategy, among those that the result lists.
};
/// \return kInvalidInput where the file is no result of a search, or lists fewer strategies; kIo
///     where it cannot be read.
Result<FoundStrategy> read_found(const std::string& name);

}  // namespace foreshard::cli
