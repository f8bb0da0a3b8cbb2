/// \file
/// Settings of an operator from the table: named values of five types. (ONNX and others call them
/// attributes; here an attribute is how a tensor is distributed.)
///
///     Settings{{"axis", std::int64_t{1}}, {"keep_dims", true}}
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace foreshard {

using Integers = std::vector<std::int64_t>;
using SettingValue = std::variant<bool, std::int64_t, double, std::string, Integers>;

/// "boolean", "integer", "number", "text", "integers": in the order of SettingValue.
std::string_view type_name_of(const SettingValue& value);
/// "true", "3", "0.5", "sum", "[1, 2]".
std::string describe(const SettingValue& value);

class Settings {
 public:
  Settings() = default;
  Settings(std::initializer_list<std::pair<const std::string, SettingValue>> values)
      : values_(values) {}

  void set(std::string name, SettingValue value) { values_[std::move(name)] = std::move(value); }
  bool has(const std::string& name) const { return values_.contains(name); }
  const std::map<std::string, SettingValue>& all() const { return values_; }

  /// The value of a setting, by type. \pre the setting exists and has that type. This holds for
  /// every setting that the operator's definition names, once add_operator() (operators/build.h)
  /// has checked and completed them.
  bool flag(const std::string& name) const;
  std::int64_t integer(const std::string& name) const;
  double number(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  const Integers& integers(const std::string& name) const;

  bool operator==(const Settings&) const = default;

 private:
  template <class T>
  const T& get(const std::string& name) const;
  std::map<std::string, SettingValue> values_;
};

}  // namespace foreshard
