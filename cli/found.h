/// \file
/// Results of a search used as studies: `found.json` is the first strategy in the JSON that
/// `foreshard search` wrote, `found.json#2` the second one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

#include "sim/search/explain.h"

namespace foreshard::cli {

/// Name of a strategy in a search's result, as given on a command line.
struct FoundName {
  std::string path;
  std::int64_t number = 1;
  bool is_numbered = false;  ///< "#2" was given.
};
/// Splits "found.json#2" into file and number. A name without a number after a `#`, or the name of
/// an existing file, is only a path.
FoundName found_name(const std::string& name);

/// Whether the file named by `name` has the JSON of a search.
bool holds_found(const std::string& name);

struct FoundStrategy {
  search::ReadResult result;
  std::size_t index = 0;  ///< Index of the strategy in the result's list.
};
/// \return kInvalidInput if the file is no result of a search or lists fewer strategies; kIo if it
///     cannot be read.
Result<FoundStrategy> read_found(const std::string& name);

}  // namespace foreshard::cli
