/// \file
/// Numbers of results, read from their JSON for pictures. What is wrong is thrown, as the JSON
/// library does: picture_of() makes an Error of it.
#pragma once

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace foreshard::picture {

using Json = nlohmann::ordered_json;

inline constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

/// A number that must be finite and not negative.
inline double checked_amount(const Json& json, std::string_view name) {
  const auto value = json.get<double>();
  constexpr double kMost = 1e30;  // more than any amount of a cluster
  if (!std::isfinite(value) || value < 0 || value > kMost)
    throw std::out_of_range(fmt::format("'{}' is {}", name, value));
  return value;
}
inline double amount(const Json& object, const char* key) {
  return checked_amount(object.at(key), key);
}

/// The time of a prediction's step, in seconds.
inline double step_of(const Json& result) {
  const Json& step = result.at("step");
  if (step.at("time_s").is_null())
    throw std::out_of_range("its step never ends: a failure interrupts it");
  return amount(step, "time_s");
}

inline std::optional<double> amount_if_known(const Json& object, const char* key) {
  if (!object.contains(key) || object.at(key).is_null()) return std::nullopt;
  return amount(object, key);
}

}  // namespace foreshard::picture
