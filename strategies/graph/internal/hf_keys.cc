#include "strategies/graph/internal/hf_keys.h"

#include <fmt/format.h>
#include <utility>

namespace foreshard::internal {

const HfKeys::Json* HfKeys::find(std::string_view key) const {
  const Json* object = &json_;
  for (;;) {
    const std::size_t dot = key.find('.');
    const auto place = object->find(key.substr(0, dot));
    if (place == object->end() || place->is_null()) return nullptr;
    if (dot == std::string_view::npos) return &*place;
    if (!place->is_object()) return nullptr;
    object = &*place;
    key.remove_prefix(dot + 1);
  }
}

const HfKeys::Json* HfKeys::find_first(const std::vector<std::string>& keys,
                                       std::string* key) const {
  for (const std::string& each : keys) {
    const Json* value = find(each);
    if (value == nullptr) continue;
    if (key != nullptr) *key = each;
    return value;
  }
  return nullptr;
}

std::string HfKeys::stated_key(const std::vector<std::string>& keys) const {
  std::string key = keys.empty() ? std::string() : keys.front();
  find_first(keys, &key);
  return key;
}

std::int64_t HfKeys::size(const std::vector<std::string>& keys, std::int64_t otherwise,
                          std::int64_t lowest) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 40;
  std::string key;
  const Json* value = find_first(keys, &key);
  if (value == nullptr) return otherwise;
  if (value->is_number_integer()) {
    const auto number = value->get<std::int64_t>();
    if (number >= lowest && number < kLargest) return number;
  }
  fault(fmt::format("'{}' is {}, not a whole number of at least {}", key, value->dump(), lowest));
  return lowest;
}

bool HfKeys::flag(std::string_view key, bool otherwise) {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  fault(fmt::format("'{}' is {}, not true or false", key, value->dump()));
  return otherwise;
}

bool HfKeys::any_positive(const std::vector<std::string>& keys, bool otherwise) {
  bool there = false;
  bool any = false;
  for (const std::string& key : keys) {
    const Json* value = find(key);
    if (value == nullptr) continue;
    there = true;
    if (!value->is_number())
      fault(fmt::format("'{}' is {}, not a number", key, value->dump()));
    else
      any = any || value->get<double>() > 0;
  }
  return there ? any : otherwise;
}

void HfKeys::fault(std::string message, Error::Code code) {
  if (error_.ok()) error_ = Error{code, std::move(message)};
}

}  // namespace foreshard::internal
