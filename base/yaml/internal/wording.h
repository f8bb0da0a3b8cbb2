/// \file
/// How messages and documentation name a type, and how values are written in YAML.
#pragma once

#include <string>
#include <string_view>

#include "base/yaml/type.h"

namespace foreshard::yaml::internal {

/// "a whole number", "a data rate with its unit, e.g. '2 Gbit/s'", "a list (of ...)".
std::string expectation(const Type& type);

/// The innermost type of a value: without optional, sourced and reference.
const Type& plain(const Type& type);

/// A text as a YAML scalar that reads back as that text, quoted where needed.
std::string scalar(std::string_view text);

/// A scalar value of a scalar type as YAML: "400 Gbit/s", "true", "ring".
std::string scalar(const Type& type, const void* object);

bool is_scalar(Kind kind);

/// Whether a number is within the constraint's bounds.
bool holds(const Constraint& constraint, double value);

}  // namespace foreshard::yaml::internal
