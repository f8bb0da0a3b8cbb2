/// \file
/// Small checkpoints and how they look on disk.
#pragma once

#include "tests/base/temporary_folder.h"
#include "tests/strategies/checkpoint/synthetic.h"
#include "tests/test.h"

#include "strategies/checkpoint/convert.h"

namespace foreshard::checkpoint {

inline TensorEntry tensor(std::string name, ElementType type, Shape shape, Layout layout) {
  return {.name = std::move(name),
          .type = type,
          .shape = std::move(shape),
          .layout = std::move(layout)};
}

/// Split along `dims` (per dimension the axes' indices) over ranks first, first + 1, ...
inline Layout layout_of(std::vector<MeshAxis> axes, std::vector<std::vector<Axis>> dims,
                        std::int32_t first = 0) {
  return {.mesh = mesh_from(std::move(axes), first), .attribute = {.dims = std::move(dims)}};
}

inline std::string bytes_of_file(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// Name -> contents. The manifest tells of the conversion that made it: it is left out.
inline std::map<std::string, std::string> shards_in(const std::filesystem::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().filename() != kManifestName)
      files[entry.path().filename().string()] = bytes_of_file(entry.path());
  return files;
}

/// Message of what goes wrong, or "done".
inline std::string converted(const std::filesystem::path& from, const Target& target,
                             const std::filesystem::path& to, const ConvertOptions& options = {},
                             const std::vector<std::int32_t>& lost = {}) {
  auto source = open_source(from, lost);
  if (!source) return source.error().message;
  const auto plan = plan_conversion(*std::move(source), target);
  if (!plan) return plan.error().message;
  const auto result = convert(*plan, to, options);
  return result ? (result->was_there ? "was there" : "done") : result.error().message;
}

/// Message of what is wrong with the contents, or "right".
inline std::string contents_of(const std::filesystem::path& directory, std::uint64_t seed) {
  const auto source = open_source(directory);
  if (!source) return source.error().message;
  return message_of(check_synthetic(*source, seed), "right");
}

// In memory where the system lets us: every file is flushed to its device, and hundreds are made.
class MemoryFolder {
 public:
  MemoryFolder() {
    if (const char* const before = std::getenv("TMPDIR")) before_ = before;
    std::error_code error;
    if (std::filesystem::is_directory("/dev/shm", error)) ::setenv("TMPDIR", "/dev/shm", 1);
    folder_.emplace();
    before_ ? ::setenv("TMPDIR", before_->c_str(), 1) : ::unsetenv("TMPDIR");
  }
  const std::filesystem::path& path() const { return folder_->path(); }

 private:
  std::optional<std::string> before_;
  std::optional<TemporaryFolder> folder_;
};

}  // namespace foreshard::checkpoint
