/// \file
/// The replay bundle: the sources of foreshard-replay and all that they need, for machines that
/// have only a compiler and cmake. The files are embedded in this program.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>

#include "base/result.h"

namespace foreshard::replay {

struct BundleFile {
  const char* path;           ///< Path within the bundle.
  const char* const* pieces;  ///< The text, cut into pieces; ends with null.
};
std::span<const BundleFile> bundle_files();

/// Writes all files into `folder`, which is created; files of the same names are replaced.
/// \return the number of files; kIo if one cannot be written.
Result<std::size_t> write_bundle(const std::filesystem::path& folder);

}  // namespace foreshard::replay
