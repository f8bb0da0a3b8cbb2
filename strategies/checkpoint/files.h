/// \file
/// Files of shards: read at any offset, written from front to back while their digest is taken.
/// Errors carry the path and the system's message.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/digest/sha256.h"
#include "base/result.h"

namespace foreshard::checkpoint {

/// "PATH: cannot read: No such file or directory", from errno.
Error system_fault(const std::filesystem::path& path, std::string_view verb);

class InputFile {
 public:
  /// Opens regular files only.
  /// \return kInvalidInput if there is no such file, kIo if it cannot be opened.
  static Result<InputFile> open(const std::filesystem::path& path);

  std::int64_t bytes() const { return bytes_; }
  /// Time of the last change, in nanoseconds since 1970.
  std::int64_t modified() const { return modified_; }
  /// Fills `to` from `offset` on.
  /// \return kIo, also if the file ends too early.
  Status read(std::int64_t offset, std::span<char> to) const;

 private:
  std::filesystem::path path_;
  Descriptor file_;
  std::int64_t bytes_ = 0;
  std::int64_t modified_ = 0;
};

/// Keeps up to kMostOpenFiles files open for one thread; beyond that, the least recently used is
/// closed.
class OpenFiles {
 public:
  explicit OpenFiles(const std::vector<std::filesystem::path>& paths) : paths_(&paths) {}
  /// The file `paths[index]`, opened if it is not open. The pointer is valid until the next call.
  Result<const InputFile*> at(std::int32_t index);

 private:
  struct Entry {
    std::int32_t index;
    InputFile file;
  };
  const std::vector<std::filesystem::path>* paths_;
  std::list<Entry> recent_;
};

class OutputFile {
 public:
  /// Replaces a file that is there.
  static Result<OutputFile> create(const std::filesystem::path& path);

  /// \return kIo: no space, a limit, a broken disk.
  Status append(std::string_view bytes);
  std::int64_t bytes() const { return bytes_; }
  /// Waits until the device has all bytes.
  /// \return their SHA-256.
  Result<std::string> finish();

 private:
  std::filesystem::path path_;
  Descriptor file_;
  Sha256 digest_;
  std::int64_t bytes_ = 0;
};

/// SHA-256 of the whole file, in hexadecimal, read through `buffer`; `progress`, if it is set, gets
/// the number of bytes of every piece.
/// \pre buffer is not empty.
Result<std::string> digest_of(const std::filesystem::path& path, std::span<char> buffer,
                              const std::function<void(std::int64_t)>& progress);

/// Makes the names in a directory durable.
Status flush_directory(const std::filesystem::path& path);

/// Most files that OpenFiles keeps open.
inline constexpr std::size_t kMostOpenFiles = 64;

inline Error fault(std::string why) {
  return {Error::Code::kInvalidInput, std::move(why)};
}
inline Error fault(const std::filesystem::path& path, const std::string& why) {
  return fault(path.string() + ": " + why);
}

}  // namespace foreshard::checkpoint
