/// \file
/// Typed access to the keys of a config.json; keeps the first error that reading them found.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foreshard::internal {

/// A key and its default, for files that leave the key out or give null. `key` may hold several
/// names, separated by blanks; the first one that the file has is read. nullptr: there is no such
/// key.
struct Size {
  const char* key = nullptr;
  std::int64_t value = 0;
};

class HfKeys {
 public:
  using Json = nlohmann::json;

  explicit HfKeys(const Json& json) : json_(json) {}

  /// The value of the first of `keys` that exists and is not null; nullptr if there is none.
  const Json* find(std::string_view keys) const;
  /// The value of `key` inside the object `outer`, or nullptr.
  const Json* find_in(const char* outer, const char* key) const;
  bool has(const char* key) const { return json_.contains(key); }

  std::int64_t size(const Size& wanted, std::int64_t lowest = 1);
  std::int64_t size_in(const char* outer, const char* key, std::int64_t otherwise);
  bool flag(const char* key, bool otherwise);
  bool flag_in(const char* outer, const char* key, bool otherwise);
  /// Whether any of `keys` is a number above 0; `otherwise` if none of them exists.
  bool any_positive(std::string_view keys, bool otherwise);

  /// Records an error; only the first one is kept.
  void fault(std::string message, Error::Code code = Error::Code::kInvalidInput);
  void refuse(std::string message) { fault(std::move(message), Error::Code::kUnsupported); }
  const Status& error() const { return error_; }

 private:
  std::int64_t size_of(std::string_view name, const Json& value, std::int64_t lowest);
  bool flag_of(const std::string& name, const Json* value, bool otherwise);

  const Json& json_;
  Status error_;
};

}  // namespace foreshard::internal
