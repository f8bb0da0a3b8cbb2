/// \file
/// Access to strings in JSON written by other programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace foreshard::profile::internal {

/// The string at `key`; empty if there is none.
inline std::string text_in(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace foreshard::profile::internal
