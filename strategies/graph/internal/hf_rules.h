/// \file
/// Reads what a model type says of a model into it: sizes, rules, classes, and its own code.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/graph/hf_type.h"
#include "strategies/graph/internal/model_limits.h"

namespace foreshard::internal {

/// The keys of a config.json by type, and the first fault that reading them found. A key "a.b" is
/// key b inside the object a.
class HfKeys {
 public:
  using Json = nlohmann::json;

  explicit HfKeys(const Json& json) : json_(json) {}

  /// The value of the key; nullptr if the file has none or says null.
  const Json* find(std::string_view key) const;
  /// The value of the first of `keys` that the file states, and that key; nullptr without one.
  const Json* find_first(const std::vector<std::string>& keys, std::string* key = nullptr) const;
  /// Whether the file has the key, were its value null.
  bool has(std::string_view key) const { return json_.contains(key); }
  /// The first of `keys` that the file states, or else the first.
  std::string stated_key(const std::vector<std::string>& keys) const;

  std::int64_t size(const std::vector<std::string>& keys, std::int64_t otherwise,
                    std::int64_t lowest = 1, std::int64_t most = kMostOfSize);
  std::int64_t size(const char* key, std::int64_t otherwise, std::int64_t lowest = 1) {
    return size(std::vector<std::string>{key}, otherwise, lowest);
  }
  std::int64_t size(const HfSize& wanted, std::int64_t lowest = 1) {
    return size(wanted.keys(), wanted.otherwise, lowest);
  }
  /// `otherwise` where there is no such size.
  std::int64_t size(const std::optional<HfSize>& wanted, std::int64_t otherwise = 0,
                    std::int64_t lowest = 1) {
    return wanted ? size(*wanted, lowest) : otherwise;
  }
  /// A number of layers, for each of which something may be stored.
  std::int64_t layers(const HfSize& wanted) {
    return size(wanted.keys(), wanted.otherwise, 1, kMostLayers);
  }
  bool flag(std::string_view key, bool otherwise);
  /// Whether any of `keys` is a number above 0; `otherwise` if none is there.
  bool any_positive(const std::vector<std::string>& keys, bool otherwise);

  /// Only the first counts.
  void fault(std::string message, Error::Code code = Error::Code::kInvalidInput);
  void refuse(std::string message) { fault(std::move(message), Error::Code::kUnsupported); }
  const Status& error() const { return error_; }

 private:
  // Products of two sizes are exact; what a model may have at most, its table says (model.cc).
  static constexpr std::int64_t kMostOfSize = std::int64_t{1} << 30;

  const Json& json_;
  Status error_;
};

/// Reads all sizes and properties except sequences and windows.
void read_type(HfKeys& keys, const HfType& type, Model& model);

/// What the type's `finish` names (hf_finish.cc).
void finish(HfKeys& keys, const HfType& type, Model& model);

/// What a file needs that foreshard does not model, each with the key that says so: "a mixture of
/// experts ('num_experts')". What models of `type` have is read, and not named.
/// \param type  nullptr: the catalogue has no such type.
/// \return empty if nothing is known of that kind.
std::vector<std::string> unmodelled_features(const HfKeys& keys, std::string_view model_type,
                                             const HfType* type);

}  // namespace foreshard::internal
