#include "strategies/graph/graph.h"

#include <array>
#include <fmt/format.h>

#include "base/check.h"

namespace foreshard {

std::string_view type_name_of(const SettingValue& value) {
  static constexpr std::array<std::string_view, 5> kNames{"boolean", "integer", "number", "text",
                                                          "integers"};
  return kNames[value.index()];
}

std::string describe(const SettingValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  std::string list;
  for (const std::int64_t each : std::get<Integers>(value))
    list += (list.empty() ? "" : ", ") + std::to_string(each);
  return "[" + list + "]";
}

template <class T>
const T& Settings::get(const std::string& name) const {
  const auto it = values_.find(name);
  FORESHARD_CHECK(it != values_.end() && std::holds_alternative<T>(it->second));
  return std::get<T>(it->second);
}

bool Settings::flag(const std::string& name) const {
  return get<bool>(name);
}
std::int64_t Settings::integer(const std::string& name) const {
  return get<std::int64_t>(name);
}
double Settings::number(const std::string& name) const {
  return get<double>(name);
}
const std::string& Settings::text(const std::string& name) const {
  return get<std::string>(name);
}
const Integers& Settings::integers(const std::string& name) const {
  return get<Integers>(name);
}

TensorId Graph::add(Tensor tensor) {
  tensors.push_back(std::move(tensor));
  return TensorId{static_cast<std::int64_t>(tensors.size()) - 1};
}

std::int64_t elements(const Tensor& tensor) {
  std::int64_t n = 1;
  for (const std::int64_t extent : tensor.shape) n *= extent;
  return n;
}

}  // namespace foreshard
