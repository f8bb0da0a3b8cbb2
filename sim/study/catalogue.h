/// \file
/// Finds the catalogue (configs/).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace foreshard::study {

/// The folders to search: `given`; otherwise the folder in $FORESHARD_CONFIGS; otherwise the first
/// one that exists of share/foreshard/configs next to the folder of the running program, and
/// `last`.
/// \param by  where `given` comes from, for messages: "--configs".
/// \return kIo if a folder that was named does not exist.
Result<std::vector<std::filesystem::path>> find_catalogue(const std::string& given,
                                                          std::string_view by,
                                                          const std::filesystem::path& last);

}  // namespace foreshard::study
