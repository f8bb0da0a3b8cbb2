/// \file
/// Where the catalogue (configs/) is.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace foreshard::cli {

/// The folders to search: the one given by --configs, or else that of $FORESHARD_CONFIGS, or else
/// the first that exists of share/foreshard/configs beside the program's folder and the source tree
/// this was built from.
/// \return kIo if a folder that was named does not exist.
Result<std::vector<std::filesystem::path>> find_catalogue(const std::string& given);

}  // namespace foreshard::cli
