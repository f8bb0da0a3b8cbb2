/// \file
/// Where the catalogue (configs/) is.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foreshard::study {

/// The folders to search: `given`, or else that of $FORESHARD_CONFIGS, or else the first that
/// exists of share/foreshard/configs beside the running program's folder and `last`.
/// \param by  what gave `given`, for messages: "--configs".
/// \return kIo if a folder that was named does not exist.
Result<std::vector<std::filesystem::path>> find_catalogue(const std::string& given,
                                                          std::string_view by,
                                                          const std::filesystem::path& last);

}  // namespace foreshard::study
