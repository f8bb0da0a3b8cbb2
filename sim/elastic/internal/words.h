/// \file
/// Values that may be unknown, for people and as JSON.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/quantity.h"

namespace foreshard::elastic::internal {

inline constexpr const char* kUnknown = "UNKNOWN";

template <class Q>
std::string shown(const std::optional<Q>& quantity) {
  return quantity ? format(*quantity) : kUnknown;
}
/// The value in its base unit, or null.
template <class Q>
nlohmann::ordered_json known(const std::optional<Q>& quantity) {
  return quantity ? nlohmann::ordered_json(quantity->in_base()) : nlohmann::ordered_json(nullptr);
}
inline std::int64_t whole(Bytes bytes) {
  return std::llround(bytes.in_base());
}

}  // namespace foreshard::elastic::internal
