// Finds the folder configs/ (catalogue.h), for the command line and the library.
#include "sim/study/catalogue.h"

#include <cstdlib>
#include <system_error>

namespace foreshard::study {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code status;
  return fs::is_directory(path, status);
}

Result<std::vector<fs::path>> named(const std::string& path, std::string_view by) {
  if (!is_folder(path))
    return Error{Error::Code::kIo, std::string(by) + ": there is no folder '" + path + "'"};
  return std::vector<fs::path>{path};
}

}  // namespace

Result<std::vector<fs::path>> find_catalogue(const std::string& given, std::string_view by,
                                             const fs::path& last) {
  if (!given.empty()) return named(given, by);
  const char* variable = std::getenv("FORESHARD_CONFIGS");
  if (variable != nullptr && *variable != '\0') return named(variable, "FORESHARD_CONFIGS");
  std::error_code status;
  const fs::path program = fs::read_symlink("/proc/self/exe", status);
  for (const fs::path& folder :
       {program.parent_path().parent_path() / "share" / "foreshard" / "configs", last}) {
    if (is_folder(folder)) return std::vector<fs::path>{folder};
  }
  return std::vector<fs::path>{};
}

}  // namespace foreshard::study
