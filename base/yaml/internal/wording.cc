// Words for types and values of YAML. The reader says with them what it expected, files.cc and
// echo.cc write values, reference.cc and schema.cc describe keys. A quantity is written with its
// unit, exactly; a text is quoted where YAML could take it for anything else. A kind or an enum
// value without words is a bug of ours and fails a check.
#include "base/yaml/internal/wording.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "base/check.h"
#include "base/text.h"
#include "base/yaml/quoted.h"

namespace foreshard::yaml::internal {

const Type& plain(const Type& type) {
  const Type* inner = &type;
  while (inner->kind == Kind::kOptional || inner->kind == Kind::kSourced ||
         inner->kind == Kind::kRef)
    inner = &inner->element();
  return *inner;
}

bool is_scalar(Kind kind) {  // the scalar kinds come first in Kind
  return kind <= Kind::kEnum;
}

std::string expectation(const Type& type) {
  switch (type.kind) {
    case Kind::kBool:
      return "true or false";
    case Kind::kInteger:
      return "a whole number";
    case Kind::kReal:
      return "a number";
    case Kind::kText:
      return "a text";
    case Kind::kQuantity: {
      const DimensionInfo& info = dimension_info(type.dimension);
      return fmt::format("{} with its unit, e.g. '2 {}'", info.name, info.example);
    }
    case Kind::kEnum: {
      std::string words;
      for (const Name& name : *type.names()) words += (words.empty() ? "" : ", ") + name.text;
      return "one of " + words;
    }
    case Kind::kOptional:
    case Kind::kSourced:
      return expectation(type.element());
    case Kind::kList:
      return fmt::format("a list (each: {})", expectation(type.element()));
    case Kind::kMap:
      return fmt::format("a mapping from names (to: {})", expectation(type.element()));
    case Kind::kStruct:
      return "a mapping (" + type.fields().name + ")";
    case Kind::kRef: {
      const Fields& fields = type.element().fields();
      return fmt::format("{}the path of a YAML file, or a mapping ({})",
                         fields.folder.empty() ? "" : "a name of the catalogue, ", fields.name);
    }
    case Kind::kWords:
      return "a value or a list of values";
    case Kind::kWritten:
      return "a value of any kind";
  }
  FORESHARD_CHECK(false && "every kind has words for it");
  return {};
}

std::string scalar(std::string_view text) {
  const auto harmless = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '/' || c == '.' ||
           c == '-' || c == '+';
  };
  // Not quoted only where no YAML dialect takes it for anything but a text.
  const bool is_plain = !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0 &&
                        std::all_of(text.begin(), text.end(), harmless);
  static constexpr std::string_view kSpecial[] = {"true", "false", "null", "yes", "no",
                                                  "on",   "off",   "y",    "n"};
  const std::string low = lower_case(text);
  if (is_plain && std::find(std::begin(kSpecial), std::end(kSpecial), low) == std::end(kSpecial))
    return std::string(text);

  return yaml::quoted(text);
}

std::string scalar(const Type& type, const void* object) {
  switch (type.kind) {
    case Kind::kBool:
      return *static_cast<const bool*>(object) ? "true" : "false";
    case Kind::kInteger:
      return fmt::format("{}", type.integer(object));
    case Kind::kReal:
      return fmt::format("{}", type.real(object));
    case Kind::kText:
      return scalar(*static_cast<const std::string*>(object));
    case Kind::kQuantity:
      return format_quantity_exact(type.real(object), type.dimension);
    case Kind::kEnum:
      for (const Name& name : *type.names())
        if (name.value == type.integer(object)) return scalar(name.text);
      break;
    default:
      break;
  }
  FORESHARD_CHECK(false && "the type is a scalar, and an enum value has a name");
  return {};
}

bool holds(const Constraint& constraint, double value) {
  return value >= constraint.lowest && value <= constraint.highest &&
         !(constraint.lowest_excluded && value == constraint.lowest);
}

}  // namespace foreshard::yaml::internal
