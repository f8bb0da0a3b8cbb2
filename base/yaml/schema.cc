#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "base/yaml/describe.h"
#include "base/yaml/internal/wording.h"

// The JSON Schema (draft 07) of a type that is read from YAML: `foreshard schema` prints it, and
// editors complete and check files with it. A quantity is a text, a number and a unit; of its
// constraints the schema checks only the sign.

namespace foreshard::yaml::internal {
namespace {

using Json = nlohmann::ordered_json;
using Constraints = std::vector<Constraint>;

// Writes the schema of `root`, with a definition for each struct that it refers to.
class Writer {
 public:
  explicit Writer(const Type& root) : root_(root) {}

  Json write() {
    const Json body = schema(root_, {});
    Json document{{"$schema", "http://json-schema.org/draft-07/schema#"}};
    if (root_.kind == Kind::kStruct) {
      document["title"] = root_.fields().name;
      document["description"] = root_.fields().doc;
      document["allOf"] = Json::array({body});
    } else {
      document.update(body);
    }
    document["definitions"] = Json::object();
    for (const auto& [name, definition] : definitions_) document["definitions"][name] = definition;
    return document;
  }

 private:
  // The schema of a value of this type; for a struct, a reference to its definition.
  Json schema(const Type& type, const Constraints& constraints) {
    switch (type.kind) {
      case Kind::kBool:
        return {{"type", "boolean"}};
      case Kind::kInteger:
      case Kind::kReal:
        return number(type, constraints);
      case Kind::kText:
        return text(constraints);
      case Kind::kQuantity:
        return quantity(type, constraints);
      case Kind::kEnum: {
        Json words = Json::array();
        for (const Name& name : *type.names()) words.push_back(name.text);
        return {{"enum", words}};
      }
      case Kind::kOptional:
        return any_of(schema(type.element(), constraints), {{"type", "null"}});
      case Kind::kList: {
        Json list{{"type", "array"}, {"items", item(type.element(), constraints)}};
        if (is_non_empty(constraints)) list["minItems"] = 1;
        return list;
      }
      case Kind::kMap: {
        Json map{{"type", "object"}, {"additionalProperties", schema(type.element(), constraints)}};
        if (is_non_empty(constraints)) map["minProperties"] = 1;
        return map;
      }
      case Kind::kStruct:
        return structure(type);
      case Kind::kSourced:
        return sourced(type, constraints);
      case Kind::kRef:  // the name of an object of the catalogue, or the object itself
        return any_of({{"type", "string"}}, schema(type.element(), constraints));
      case Kind::kWords: {  // one scalar, or a list of scalars
        const Json scalar{{"type", Json::array({"string", "number", "boolean"})}};
        return any_of(scalar, {{"type", "array"}, {"items", scalar}});
      }
      case Kind::kWritten:  // any value but null, which the reader keeps as text
        return {{"type", Json::array({"string", "number", "boolean", "array", "object"})}};
    }
    FORESHARD_CHECK(false && "every kind has a schema");
    return {};
  }

  // The schema of an item of a list. An item demands all keys that a struct requires; a mapping
  // outside lists does not, because the object that `extends` names may have them.
  Json item(const Type& type, const Constraints& constraints) {
    Json body = schema(type, constraints);
    const bool is_whole = type.kind == Kind::kStruct && type.fields().folder.empty();
    const Json required = is_whole ? required_keys(type.fields()) : Json();
    if (required.empty()) return body;
    return {{"allOf", Json::array({std::move(body), {{"required", required}}})}};
  }

  static Json required_keys(const Fields& fields) {
    Json required = Json::array();
    for (const Field& field : fields.fields)
      if (field.required) required.push_back(field.key);
    return required;
  }

  static Json any_of(Json first, Json second) {
    return {{"anyOf", Json::array({std::move(first), std::move(second)})}};
  }

  static bool is_non_empty(const Constraints& constraints) {
    return std::any_of(constraints.begin(), constraints.end(),
                       [](const Constraint& c) { return c.non_empty; });
  }

  static Json number(const Type& type, const Constraints& constraints) {
    const bool whole = type.kind == Kind::kInteger;
    const auto bound = [&](double value) {
      return whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
    };
    Json result{{"type", whole ? "integer" : "number"}};
    for (const Constraint& c : constraints) {
      if (std::isfinite(c.lowest))
        result[c.lowest_excluded ? "exclusiveMinimum" : "minimum"] = bound(c.lowest);
      if (std::isfinite(c.highest)) result["maximum"] = bound(c.highest);
    }
    return result;
  }

  static Json text(const Constraints& constraints) {
    Json result{{"type", "string"}};
    for (const Constraint& c : constraints) {
      if (!c.allowed.empty()) result["enum"] = c.allowed;
      if (c.non_empty) result["minLength"] = 1;
    }
    return result;
  }

  // A number with one of the dimension's suffixes. A pattern cannot express bounds, only that there
  // is no sign.
  static Json quantity(const Type& type, const Constraints& constraints) {
    const DimensionInfo& info = dimension_info(type.dimension);
    std::vector<std::string> suffixes;
    for (const Suffix& suffix : info.suffixes) suffixes.emplace_back(suffix.text);
    const bool no_sign = std::any_of(constraints.begin(), constraints.end(),
                                     [](const Constraint& c) { return c.lowest >= 0; });
    return {{"type", "string"},
            {"pattern", "^ *" + std::string(no_sign ? "" : "-?") +
                            "([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)? *(" +
                            join(suffixes, "|") + ")$"},
            {"examples", Json::array({"2 " + std::string(info.example)})}};
  }

  // A value, or an object with the value, its source and the kind of evidence.
  Json sourced(const Type& type, const Constraints& constraints) {
    Json value = schema(type.element(), constraints);
    Json with_source{
        {"type", "object"},
        {"properties",
         {{"value", value},
          {"source", {{"type", "string"}, {"minLength", 1}, {"description", "Where it is from."}}},
          {"evidence", schema(type_of<Evidence>(), {})}}},
        {"required", Json::array({"value", "source", "evidence"})},
        {"additionalProperties", false}};
    return any_of(std::move(value), std::move(with_source));
  }

  // A reference to the struct's definition. The first reference also makes the definition. The
  // struct is entered into `structs_` before its fields are visited, since it may contain itself.
  Json structure(const Type& type) {
    const Fields& fields = type.fields();
    const Json ref{{"$ref", "#/definitions/" + fields.name}};
    const auto [known, is_new] = structs_.emplace(fields.name, &fields);
    FORESHARD_CHECK(known->second == &fields);  // No two structs share a name.
    if (!is_new) return ref;

    Json properties = Json::object();
    // An object of the catalogue, and the root of a file, may be written as changes to another
    // object (`extends`).
    const bool can_extend = !fields.folder.empty() || &type == &root_;
    if (can_extend)
      properties["extends"] = {{"type", "string"},
                               {"description",
                                "The object that this one changes: a name of the catalogue, or the "
                                "path of a YAML file."}};
    for (const Field& field : fields.fields) properties[field.key] = member(field, fields.defaults);
    const Json required = required_keys(fields);
    Json definition{{"type", "object"},
                    {"description", fields.doc},
                    {"properties", properties},
                    {"additionalProperties", false}};
    if (!required.empty() && can_extend)
      definition["anyOf"] =
          Json::array({{{"required", required}}, {{"required", Json::array({"extends"})}}});
    definitions_.emplace(fields.name, std::move(definition));
    return ref;
  }

  // The schema of one field of a struct, with its description. `defaults` points to a struct as its
  // constructor leaves it, from which defaults are read. Optional, list, map and struct fields show
  // no default.
  Json member(const Field& field, const void* defaults) {
    const Type& type = field.type();
    Json body = schema(type, field.constraints);
    // Draft 07 ignores everything beside "$ref".
    if (body.contains("$ref")) body = {{"allOf", Json::array({body})}};
    std::string description = field.doc;
    for (const Constraint& c : field.constraints) description += " Must be " + c.doc + ".";
    if (type.kind == Kind::kEnum)
      for (const Name& name : *type.names()) description += "\n- " + name.text + ": " + name.doc;
    body["description"] = description;
    const void* default_value = static_cast<const char*>(defaults) + field.offset;
    if (!field.required) {
      if (type.kind == Kind::kBool)
        body["default"] = *static_cast<const bool*>(default_value);
      else if (type.kind == Kind::kInteger)
        body["default"] = type.integer(default_value);
      else if (type.kind == Kind::kReal)
        body["default"] = type.real(default_value);
      else if (type.kind == Kind::kText)
        body["default"] = *static_cast<const std::string*>(default_value);
      else if (is_scalar(type.kind))
        body["default"] = scalar(type, default_value);
    }
    return body;
  }

  const Type& root_;
  std::map<std::string, const Fields*> structs_;  // name -> its fields; all structs seen so far
  std::map<std::string, Json> definitions_;       // name of a struct -> its schema, once complete
};

}  // namespace

nlohmann::ordered_json json_schema(const Type& type) {
  return Writer(type).write();
}

}  // namespace foreshard::yaml::internal
