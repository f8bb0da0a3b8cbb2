/// \file
/// The replay bundle: the sources of foreshard-replay with all that they need, for machines that
/// have a compiler and cmake only. They lie in this program.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>

#include "base/result.h"

namespace foreshard::replay {

struct BundleFile {
  const char* path;           ///< Within the bundle.
  const char* const* pieces;  ///< Its text, cut; the last one is null.
};
std::span<const BundleFile> bundle_files();

/// Writes all files into `folder`, which is made; files of the same names are replaced.
/// \return kIo if one cannot be written; else how many there are.
Result<std::size_t> write_bundle(const std::filesystem::path& folder);

}  // namespace foreshard::replay
