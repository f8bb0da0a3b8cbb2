/// \file
/// What the command line names: a file, an entry of the catalogue, or YAML in braces.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/yaml/loader.h"

namespace foreshard::cli {

/// The object in the file or catalogue entry `name`, or in YAML in braces; overrides see it at
/// `at`.
template <class T>
Result<T> load(const std::string& name, yaml::Loader& loader, std::string_view at = {}) {
  if (name.starts_with('{')) return loader.read_text<T>(name, "command line", at);
  const bool file = name.ends_with(".yaml") || name.ends_with(".yml");
  return file ? loader.read_file<T>(name, at) : loader.read_ref<T>(name, at);
}

}  // namespace foreshard::cli
