/// \file
/// A JSON value and its place in the document, read strictly.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foreshard::checkpoint::internal {

using Json = nlohmann::json;

/// Leaves a reader from any depth; the function that began to read catches it.
struct JsonFault {
  std::string why;
};

class JsonNode {
 public:
  explicit JsonNode(const Json& value, std::string place = {})
      : value_(value), place_(std::move(place)) {}

  [[noreturn]] void fault(const std::string& why) const;

  /// An object with all of `required`, and nothing but those and `optional`.
  const JsonNode& fields(std::initializer_list<std::string_view> required,
                         std::initializer_list<std::string_view> optional = {}) const;
  bool has(std::string_view key) const;
  JsonNode operator[](std::string_view key) const;  ///< \pre has(key)

  std::size_t size() const;              ///< Of an array.
  JsonNode at(std::size_t index) const;  ///< \pre index < size()
  const Json& members() const;           ///< Of an object.
  std::string text() const;
  std::int64_t integer(std::int64_t least, std::int64_t most) const;

 private:
  [[noreturn]] void expected(const std::string& what) const;

  const Json& value_;
  std::string place_;
};

/// Parses `text`. Throws JsonFault if it is not JSON, is nested deeper than 16, or has a key twice.
Json parse(std::string_view text);

}  // namespace foreshard::checkpoint::internal
