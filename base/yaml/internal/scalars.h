/// \file
/// Texts of scalars to values, strictly.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/yaml/internal/node.h"
#include "base/yaml/type.h"

namespace foreshard::yaml::internal {

struct Complaint {
  std::string message;
  std::string help;
};

/// Puts the scalar `node` into `object`. `key` is what messages call the value.
/// \pre `type` is scalar and `node` is a scalar.
std::optional<Complaint> read_scalar(const Node& node, const Type& type, const std::string& key,
                                     void* object);

/// A complaint if `object` breaks one of `constraints`.
/// \pre `type` is a scalar, a list or a map.
std::optional<Complaint> broken_constraint(const Type& type,
                                           const std::vector<Constraint>& constraints,
                                           const std::string& key, const void* object);

}  // namespace foreshard::yaml::internal
