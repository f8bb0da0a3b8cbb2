/// \file
/// Libraries that are loaded when they are needed, so that the program also starts where they are
/// missing, and names it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foreshard::replay::gpu {

/// Stays loaded until the process ends (CUDA's libraries do not like to be unloaded).
class Library {
 public:
  /// Tries, for each of `names` ("libnccl.so.2"): the folders of the environment variable
  /// FORESHARD_LIBRARY_PATH (separated by ":"), of `home` (an environment variable such as
  /// NCCL_HOME; its lib and lib64), what the system's loader knows (LD_LIBRARY_PATH, ldconfig), and
  /// CUDA's usual folders.
  /// \return kUnsupported: "NCCL is not here: ..., tried ...; `help`".
  static Result<Library> open(std::string_view what, std::span<const char* const> names,
                              const char* home, std::string_view help);

  /// The file, as it was asked for.
  const std::string& path() const { return path_; }

  /// \return whether the library has the function; `function` is null if not.
  template <class F>
  bool find(const char* name, F& function) const {
    function = reinterpret_cast<F>(address(name));
    return function != nullptr;
  }

 private:
  Library(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  void* address(const char* name) const;

  void* handle_;
  std::string path_;
};

}  // namespace foreshard::replay::gpu
