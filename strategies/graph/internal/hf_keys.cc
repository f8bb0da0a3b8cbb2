#include "strategies/graph/internal/hf_keys.h"

#include <fmt/format.h>
#include <utility>

namespace foreshard::internal {
namespace {

// Calls `visit` with each word of `words` until it returns true.
template <class Visit>
void each_word(std::string_view words, Visit visit) {
  while (!words.empty()) {
    const std::size_t blank = words.find(' ');
    if (visit(words.substr(0, blank)) || blank == std::string_view::npos) return;
    words.remove_prefix(blank + 1);
  }
}

const nlohmann::json* stated(const nlohmann::json& object, std::string_view key) {
  const auto place = object.find(key);
  return place == object.end() || place->is_null() ? nullptr : &*place;
}

}  // namespace

const HfKeys::Json* HfKeys::find(std::string_view keys) const {
  const Json* found = nullptr;
  each_word(keys, [&](std::string_view key) { return (found = stated(json_, key)) != nullptr; });
  return found;
}

const HfKeys::Json* HfKeys::find_in(const char* outer, const char* key) const {
  const Json* object = find(outer);
  return object == nullptr || !object->is_object() ? nullptr : stated(*object, key);
}

std::int64_t HfKeys::size_of(std::string_view name, const Json& value, std::int64_t lowest) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 40;
  if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    if (number >= lowest && number < kLargest) return number;
  }
  fault(fmt::format("'{}' is {}, not a whole number of at least {}", name, value.dump(), lowest));
  return lowest;
}

std::int64_t HfKeys::size(const Size& wanted, std::int64_t lowest) {
  std::int64_t number = wanted.value;
  if (wanted.key == nullptr) return number;
  each_word(wanted.key, [&](std::string_view key) {
    const Json* value = stated(json_, key);
    if (value != nullptr) number = size_of(key, *value, lowest);
    return value != nullptr;
  });
  return number;
}

std::int64_t HfKeys::size_in(const char* outer, const char* key, std::int64_t otherwise) {
  const Json* value = find_in(outer, key);
  return value == nullptr ? otherwise : size_of(fmt::format("{}.{}", outer, key), *value, 1);
}

bool HfKeys::flag_of(const std::string& name, const Json* value, bool otherwise) {
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  fault(fmt::format("'{}' is {}, not true or false", name, value->dump()));
  return otherwise;
}

bool HfKeys::flag(const char* key, bool otherwise) {
  return flag_of(key, find(key), otherwise);
}

bool HfKeys::flag_in(const char* outer, const char* key, bool otherwise) {
  return flag_of(fmt::format("{}.{}", outer, key), find_in(outer, key), otherwise);
}

bool HfKeys::any_positive(std::string_view keys, bool otherwise) {
  bool there = false;
  bool any = false;
  each_word(keys, [&](std::string_view key) {
    const Json* value = stated(json_, key);
    if (value == nullptr) return false;
    there = true;
    if (!value->is_number())
      fault(fmt::format("'{}' is {}, not a number", key, value->dump()));
    else
      any = any || value->get<double>() > 0;
    return false;
  });
  return there ? any : otherwise;
}

void HfKeys::fault(std::string message, Error::Code code) {
  if (error_.ok()) error_ = Error{code, std::move(message)};
}

}  // namespace foreshard::internal
