/// \file
/// A folder for temporary files, removed by the destructor.
#pragma once

#include <filesystem>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp
#include <string>
#include <system_error>

namespace foreshard {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::error_code fault;
    const auto parent = std::filesystem::temp_directory_path(fault);
    std::string pattern = (parent / "foreshard-XXXXXX").string();
    if (!fault && ::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  /// Empty if no folder could be made.
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace foreshard
