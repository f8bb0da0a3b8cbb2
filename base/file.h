/// \file
/// Whole files in and out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace foreshard {

/// The bytes of the file at `path`; "-" is stdin, which is read once and kept.
/// \return kIo if it is missing, no regular file, sparse, unreadable, or larger than `largest`
///     (base/limits.h; FORESHARD_LIMITS raises it); kInvalidInput if it is to be written
///     (protect_inputs); the message starts with the path.
Result<std::string> read_file(const std::filesystem::path& path, Bytes largest);

/// Whether `path` is a device, a pipe or the like: something to write to, not to replace.
bool is_special(const std::filesystem::path& path);
/// The file that `path` leads to through symbolic links, whether it is there yet or not.
std::filesystem::path behind_links(const std::filesystem::path& path);

/// A file that is written piece by piece, and takes the place of `path` (or of the file that `path`
/// links to) when it is complete: a reader, or a crash, sees the old file or the new one, never a
/// part. It keeps the permissions of the old file and, where the system lets it, its owner. Until
/// then it has no name, where the file system supports that; else its name is `path` and ".new".
/// SIGINT, SIGTERM and SIGHUP then have to wait, and what SIGKILL leaves, the next one takes over.
/// A special file is written to in place, and so are the open files of this process (/dev/stdout).
class NewFile {
 public:
  /// \return kIo with the path and the reason; kInvalidInput if `path` was read (protect_inputs).
  static Result<NewFile> begin(const std::filesystem::path& path);
  NewFile(NewFile&&) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  /// Where the file is not complete, the old one is untouched and nothing is left.
  ~NewFile();

  /// \return kIo
  Status append(std::string_view bytes);
  /// Flushes the file to the disk and puts it in its place.
  /// \return kIo
  Status finish();

 private:
  struct State;
  explicit NewFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Replaces the file at `path` by `bytes`, as a NewFile.
Status write_file(const std::filesystem::path& path, std::string_view bytes);

// Programs of one command do not write onto what they read, under whatever name.

/// The option of a command line that names a file to be written, and that file.
using NamedOutput = std::pair<std::string, std::filesystem::path>;
/// From now on, files of `outputs` are not read, and files that were read are not written.
void protect_inputs(const std::vector<NamedOutput>& outputs);
/// For who reads `path` without read_file.
/// \return kInvalidInput if it is to be written.
Status note_input(const std::filesystem::path& path);

}  // namespace foreshard
