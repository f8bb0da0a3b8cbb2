#include "validate/replay/bundle/bundle.h"

#include <string>
#include <system_error>

#include "base/file.h"

namespace foreshard::replay {

Result<std::size_t> write_bundle(const std::filesystem::path& folder) {
  for (const BundleFile& file : bundle_files()) {
    const std::filesystem::path path = folder / file.path;
    std::error_code problem;
    std::filesystem::create_directories(path.parent_path(), problem);
    if (problem)
      return Error{Error::Code::kIo,
                   "cannot make " + path.parent_path().string() + ": " + problem.message()};
    std::string text;
    for (const char* const* piece = file.pieces; *piece != nullptr; ++piece) text += *piece;
    FORESHARD_TRY(write_file(path, text));
  }
  return bundle_files().size();
}

}  // namespace foreshard::replay
