#include "base/yaml/bounds.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/yaml/internal/wording.h"

namespace foreshard::yaml::internal {
namespace {

using Constraints = std::vector<Constraint>;

std::string fault_in(const Type& type, const std::string& key, const Constraints& constraints,
                     const void* object);

std::string fault_in_number(double value, const std::string& key, const Constraints& constraints) {
  const auto broken =
      std::ranges::find_if(constraints, [&](const Constraint& c) { return !holds(c, value); });
  return broken == constraints.end()
             ? std::string()
             : fmt::format("'{}' must be {}, not {}", key, broken->doc, value);
}

std::string fault_in_members(const Type& type, const std::string& key, const void* object) {
  for (const Field& field : type.fields().fields) {
    const std::string path = key.empty() ? field.key : key + "." + field.key;
    std::string fault = fault_in(field.type(), path, field.constraints,
                                 static_cast<const char*>(object) + field.offset);
    if (!fault.empty()) return fault;
  }
  for (const Check& check : type.fields().checks)
    if (const std::string why = check.fault(object); !why.empty())
      return fmt::format("'{}': {}", key.empty() ? check.key : key + "." + check.key, why);
  return {};
}

std::string fault_in(const Type& type, const std::string& key, const Constraints& constraints,
                     const void* object) {
  // The accessors of Type serve the reader, so they take a mutable object; nothing is written.
  const auto inside = [&] { return type.value(const_cast<void*>(object)); };
  switch (type.kind) {
    case Kind::kInteger:
      return fault_in_number(static_cast<double>(type.integer(object)), key, constraints);
    case Kind::kReal:
    case Kind::kQuantity:
      return fault_in_number(type.real(object), key, constraints);
    case Kind::kStruct:
      return fault_in_members(type, key, object);
    case Kind::kSourced:
    case Kind::kRef:
      return fault_in(type.element(), key, constraints, inside());
    case Kind::kOptional:
    case Kind::kList:
    case Kind::kMap: {
      std::string fault;
      type.each(object, [&](const std::string&, const void* element) {
        if (fault.empty()) fault = fault_in(type.element(), key, constraints, element);
      });
      return fault;
    }
    default:
      return {};
  }
}

}  // namespace

std::string out_of_bounds(const Type& type, const void* object) {
  return fault_in(type, "", {}, object);
}

}  // namespace foreshard::yaml::internal
