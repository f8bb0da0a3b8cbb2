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

struct Kind {
  std::string_view name;     ///< "cluster".
  std::string_view folder;   ///< Of the catalogue: "clusters".
  std::string_view summary;  ///< One line.
  /// Reads a file, or the catalogue entry of that name, and writes all of it out again.
  Result<std::string> (*echo_file)(yaml::Loader& loader, const std::filesystem::path& path);
  Result<std::string> (*echo_entry)(yaml::Loader& loader, std::string_view name);
  nlohmann::ordered_json (*schema)();
  std::vector<std::string> (*keys)();  ///< Of the top level.
};

/// By name, the study first.
std::span<const Kind> kinds();
/// A kind by its name or its folder.
/// \return nullptr if there is none.
const Kind* find_kind(std::string_view name);
/// The names of all kinds.
std::vector<std::string> kind_names();

/// What the file at `path` is: by the catalogue folder it lies in, or else the kind that knows most
/// of its top-level keys; a study, if none knows any.
const Kind& kind_of(const std::filesystem::path& path, std::string_view text);

/// The same model with the sizes that follow from others (kv_heads, head_dim, ffn) written out.
Model with_sizes(Model model);

/// The names in a kind's catalogue folder, sorted; nested folders as "by-device/a100".
std::vector<std::string> entries_of(const Kind& kind,
                                    const std::vector<std::filesystem::path>& catalogue);

}  // namespace foreshard::cli
