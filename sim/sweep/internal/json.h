/// \file
/// Optional values as JSON; missing ones are null.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace foreshard::sweep::internal {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
/// The value in its base unit.
template <class Q>
Json known(const std::optional<Q>& quantity) {
  return quantity ? Json(quantity->in_base()) : Json(nullptr);
}

}  // namespace foreshard::sweep::internal
