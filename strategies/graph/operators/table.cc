#include <algorithm>

#include "base/check.h"
#include "base/text.h"

#include "strategies/graph/operators/definition.h"
#include "strategies/graph/operators/internal/families.h"

namespace foreshard {

std::span<const OperatorDefinition> operator_definitions() {
  // Sorted by name.
  static const std::vector<OperatorDefinition> kTable{
      operators::binary(), operators::cast(),  operators::dropout(),        operators::einsum(),
      operators::matmul(), operators::unary(), operators::unary_gradient(), operators::where(),
  };
  return kTable;
}

const OperatorDefinition* find_operator(std::string_view name) {
  const auto table = operator_definitions();
  const auto it = std::ranges::lower_bound(table, name, {}, &OperatorDefinition::name);
  return it != table.end() && it->name == name ? &*it : nullptr;
}

std::string unknown_operator(std::string_view name) {
  std::vector<std::string> names;
  for (const OperatorDefinition& each : operator_definitions()) names.emplace_back(each.name);
  std::string message = "unknown operator '" + std::string(name) + "'";
  if (const auto nearest = nearest_name(name, names))
    message += "; did you mean '" + *nearest + "'?";
  return message + " See `foreshard catalog operators` for all of them";
}

}  // namespace foreshard
