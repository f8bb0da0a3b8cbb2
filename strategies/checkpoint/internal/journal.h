/// \file
/// The journal of what a conversion has finished, in case it is interrupted: one line of JSON for
/// each file, appended and flushed after the file itself. A line that was cut off is ignored.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include "base/result.h"

#include "strategies/checkpoint/files.h"
#include "strategies/checkpoint/manifest.h"

namespace foreshard::checkpoint::internal {

class Journal {
 public:
  /// Opens or begins the journal in `directory` and locks it against a second run.
  /// \return kInvalidInput if it belongs to a conversion other than `identity`, or another process
  ///     has it; kIo.
  static Result<Journal> open(const std::filesystem::path& directory, const std::string& identity);

  /// path -> file, for files that were finished before the journal was opened.
  const std::map<std::string, ShardFile>& finished() const { return finished_; }

  /// Thread-safe.
  Status add(const ShardFile& file);

 private:
  Status append(const std::string& line);

  std::filesystem::path path_;
  Descriptor file_;
  std::map<std::string, ShardFile> finished_;
  std::unique_ptr<std::mutex> adding_ = std::make_unique<std::mutex>();
};

}  // namespace foreshard::checkpoint::internal
