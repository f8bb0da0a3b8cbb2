#include "validate/replay/gpu/library.h"

#include <cstdlib>
#include <dlfcn.h>
#include <vector>

namespace foreshard::replay::gpu {
namespace {

void add_parts(std::vector<std::string>& folders, const char* variable) {
  const char* value = std::getenv(variable);
  std::string_view rest = value == nullptr ? "" : value;
  while (!rest.empty()) {
    const auto end = rest.find(':');
    if (const auto part = rest.substr(0, end); !part.empty()) folders.emplace_back(part);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  }
}

}  // namespace

Result<Library> Library::open(std::string_view what, std::span<const char* const> names,
                              const char* home, std::string_view help) {
  std::vector<std::string> folders;
  add_parts(folders, "FORESHARD_LIBRARY_PATH");
  for (const char* variable : {home, "CUDA_HOME"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    folders.push_back(std::string(value) + "/lib");
    folders.push_back(std::string(value) + "/lib64");
  }
  folders.emplace_back();  // the system's loader
  folders.emplace_back("/usr/local/cuda/lib64");
  std::string first_reason;
  for (const std::string& folder : folders)
    for (const char* name : names) {
      const std::string path = folder.empty() ? name : folder + "/" + name;
      if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return Library(handle, path);
      const char* reason = dlerror();
      // The error of a file that exists but does not load says more than that of a missing file.
      const std::string text = reason == nullptr ? path : reason;
      const bool absent = text.find("No such file") != std::string::npos;
      if (first_reason.empty() ||
          (!absent && first_reason.find("No such file") != std::string::npos))
        first_reason = text;
    }
  return Error{Error::Code::kUnsupported,
               std::string(what) + " is not here: " + first_reason + "; " + std::string(help)};
}

void* Library::address(const char* name) const {
  return dlsym(handle_, name);
}

}  // namespace foreshard::replay::gpu
