/// \file
/// The keys of a config.json by type, and the first fault that reading them found.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foreshard::internal {

/// A key and what it is where the file is silent or says null. `key` may name several, with blanks
/// between: the first that the file has counts. nullptr: there is no such key.
struct Size {
  const char* key = nullptr;
  std::int64_t value = 0;
};

class HfKeys {
 public:
  using Json = nlohmann::json;

  explicit HfKeys(const Json& json) : json_(json) {}

  /// The value of the first of `keys` that is there and not null.
  const Json* find(std::string_view keys) const;
  /// That of `key` inside the object `outer`, or nullptr.
  const Json* find_in(const char* outer, const char* key) const;
  bool has(const char* key) const { return json_.contains(key); }

  std::int64_t size(const Size& wanted, std::int64_t lowest = 1);
  std::int64_t size_in(const char* outer, const char* key, std::int64_t otherwise);
  bool flag(const char* key, bool otherwise);
  bool flag_in(const char* outer, const char* key, bool otherwise);
  /// Whether any of `keys` is a number above 0; `otherwise` if none is there.
  bool any_positive(std::string_view keys, bool otherwise);

  /// Only the first counts.
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
