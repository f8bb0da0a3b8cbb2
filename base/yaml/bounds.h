/// \file
/// The limits of a table for objects that come from elsewhere: a model from a config.json has those
/// of a model in YAML.
#pragma once

#include <string>

#include "base/yaml/table.h"

namespace foreshard::yaml {

namespace internal {
std::string out_of_bounds(const Type& type, const void* object);
}  // namespace internal

/// The first number of `object`, those of its members among them, that breaks a constraint of its
/// table, or condition between members that does not hold: "'layers' must be between 1 and 16384,
/// not 4294967296"; empty if all hold. Constraints of texts are not looked at.
template <class T>
std::string out_of_bounds(const T& object) {
  return internal::out_of_bounds(type_of<T>(), &object);
}

}  // namespace foreshard::yaml
