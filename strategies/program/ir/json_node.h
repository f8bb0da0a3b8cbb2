/// \file
/// Strict reading of our JSON files: every fault names its place ("roles[3].calls[17][2]: 7 is not
/// in [0, 3]"). Programs, measurements and manifests of checkpoints are read with it.
///
///     return read_json<Totals>(text, {.what = "totals", .schema = "foreshard.totals/1",
///                                     .made_by = "foreshard sum"},
///                              [](const JsonNode& root) {
///                                root.fields({"schema", "samples"});
///                                return Totals{.samples = root["samples"].non_negative()};
///                              });
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/result.h"

namespace foreshard::program {

/// The exception with which a reader stops at any depth. read_json catches it, or the caller of
/// `parse_strictly`.
struct JsonFault {
  Error error;
};

/// A value and its place in the document. Its accessors throw JsonFault, so they belong in the
/// reader that read_json calls. A node must not outlive the node that it was taken from.
class JsonNode {
 public:
  explicit JsonNode(const nlohmann::json& value) : value_(value) {}

  std::string place() const;
  [[noreturn]] void fault(const std::string& why) const;
  [[noreturn]] void expected(const std::string& what) const;

  /// Checks that it is an object with all of the keys `required` and no others but `optional`.
  const JsonNode& fields(std::initializer_list<std::string_view> required,
                         std::initializer_list<std::string_view> optional = {}) const;
  bool has(std::string_view key) const;
  /// \pre has(key)
  JsonNode operator[](std::string_view key) const;
  /// The keys of an object, sorted.
  std::vector<std::string> keys() const;

  std::size_t size() const;
  std::size_t size_between(std::size_t least, std::size_t most) const;
  JsonNode at(std::size_t index) const;
  /// All members of an array, each read by `read`.
  template <class T, class Read>
  void each(std::vector<T>& out, Read read) const {
    const std::size_t n = size();
    out.reserve(n);
    for (std::size_t i = 0; i < n; ++i) out.push_back(read(at(i)));
  }

  bool is_null() const;
  std::string text() const;
  bool flag() const;
  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  std::int32_t index() const;  ///< An integer >= 0.
  std::int64_t count() const;  ///< An integer from 0 to 2^53.
  double finite() const;
  double non_negative() const;  ///< A finite number >= 0.
  /// One of the names that `find` knows.
  template <class Find>
  auto named(const std::string& what, Find find) const {
    const std::string name = text();
    const auto found = find(name);
    if (!found) fault("'" + name.substr(0, 60) + "' is not a " + what);
    return *found;
  }

 private:
  JsonNode(const nlohmann::json& value, const JsonNode& parent, std::string_view key,
           std::size_t index)
      : value_(value), parent_(&parent), key_(key), index_(index) {}

  const nlohmann::json& value_;
  const JsonNode* parent_ = nullptr;
  std::string_view key_;
  std::size_t index_ = 0;
};

/// A kind of file.
struct JsonForm {
  std::string_view what;     ///< "program": messages begin with it.
  std::string_view schema;   ///< Required value of the key "schema".
  std::string_view made_by;  ///< The command that writes such a file.
  Bytes largest = limits::kProgram;
};

/// The text as parsed_json reads it, but a fault is thrown, as JsonFault.
nlohmann::json parse_strictly(std::string_view text);

/// Parses strictly, compares the schema and calls `read` with the root.
/// \return nothing if all went well; kInvalidInput for other text, kUnsupported for another schema.
Status parse_json(std::string_view text, const JsonForm& form,
                  const std::function<void(const JsonNode&)>& read);

template <class T, class Read>
Result<T> read_json(std::string_view text, const JsonForm& form, Read read) {
  T out{};
  FORESHARD_TRY(parse_json(text, form, [&](const JsonNode& root) { out = read(root); }));
  return out;
}

}  // namespace foreshard::program
