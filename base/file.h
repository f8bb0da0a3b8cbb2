/// \file
/// Whole files in and out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace foreshard {

/// The bytes of the file at `path`; "-" is stdin, which is read once and kept.
/// \return kIo if it is missing, no regular file, sparse, unreadable, or larger than `largest`
///     (base/limits.h; FORESHARD_LIMITS raises it); the message starts with the path.
Result<std::string> read_file(const std::filesystem::path& path, Bytes largest);

/// Whether `path` is a device, a pipe or the like: something to write to, not to replace.
bool is_special(const std::filesystem::path& path);
/// The file that `path` leads to through symbolic links; `path` itself if there is none yet.
std::filesystem::path behind_links(const std::filesystem::path& path);

/// Replaces the file at `path` (or the file that `path` links to) by `bytes`, so that a reader (or
/// a crash) sees the old file or the new one, never a part: writes a temporary file beside it,
/// flushes that to the disk, and renames it. A special file is written to in place.
/// \return kIo with the path and the reason; then the old file is untouched.
Status write_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace foreshard
