/// \file
/// Libraries that are loaded when they are needed, so that the program also starts without them and
/// can say which one is missing.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foreshard::replay::gpu {

/// A library. It stays loaded until the process ends (unloading CUDA's libraries is unsafe).
class Library {
 public:
  /// Looks for a file with one of `names` ("libnccl.so.2") in these places, in order: the folders
  /// in the environment variable FORESHARD_LIBRARY_PATH (separated by ":"), lib and lib64 of the
  /// folders in the environment variables `home` (such as NCCL_HOME) and CUDA_HOME, where the
  /// system's loader looks (LD_LIBRARY_PATH, ldconfig), and /usr/local/cuda/lib64.
  /// \return kUnsupported: "NCCL is not here: ..., tried ...; `help`".
  static Result<Library> open(std::string_view what, std::span<const char* const> names,
                              const char* home, std::string_view help);

  /// The path with which the library was loaded.
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
