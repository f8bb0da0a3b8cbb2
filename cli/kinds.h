/// \file
/// The kinds of files that foreshard reads: one table for `check`, `schema` and `catalog`.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"

#include "strategies/graph/model.h"

namespace foreshard::cli {

struct FileKind {
  std::string_view name;     ///< "cluster".
  std::string_view folder;   ///< Folder in the catalogue: "clusters".
  std::string_view summary;  ///< One line.
  /// Reads a file, or a catalogue entry, and returns its complete content as YAML.
  Result<std::string> (*echo_file)(yaml::Loader& loader, const std::filesystem::path& path);
  Result<std::string> (*echo_entry)(yaml::Loader& loader, std::string_view name);
  const nlohmann::ordered_json& (*schema)();
  std::vector<std::string> (*keys)();  ///< Keys of the top level.
};

/// All kinds; the study comes first.
std::span<const FileKind> kinds();
/// The kind with this name or folder.
/// \return nullptr if there is none.
const FileKind* find_kind(std::string_view name);
/// The names of all kinds.
std::vector<std::string> kind_names();

/// The kind of the file at `path`: the kind that knows most of its top-level keys. If the kind of
/// the catalogue folder that contains the file knows as many, it is that kind. A study if neither
/// keys nor folder tell.
const FileKind& kind_of(const std::filesystem::path& path, std::string_view text);

/// The model with the sizes that follow from others (kv_heads, head_dim, ffn) filled in.
Model with_sizes(Model model);

/// The names in a kind's catalogue folder, sorted; nested folders as "by-device/a100".
std::vector<std::string> entries_of(const FileKind& kind,
                                    const std::vector<std::filesystem::path>& catalogue);

}  // namespace foreshard::cli
