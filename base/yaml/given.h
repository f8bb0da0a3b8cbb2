/// \file
/// An object as a person names it: by a file, an entry of the catalogue, or YAML in braces.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/yaml/loader.h"

namespace foreshard::yaml {

/// Whether `name` is a path, not the name of a catalogue entry.
inline bool is_file_name(std::string_view name) {
  return name.ends_with(".yaml") || name.ends_with(".yml");
}

/// The object in the file or catalogue entry `name`, or in YAML in braces; overrides address it by
/// `at`.
template <class T>
Result<T> read_given(const std::string& name, Loader& loader, std::string_view at = {}) {
  if (name.starts_with('{')) return loader.read_text<T>(name, "command line", at);
  return is_file_name(name) ? loader.read_file<T>(name, at) : loader.read_ref<T>(name, at);
}

}  // namespace foreshard::yaml
