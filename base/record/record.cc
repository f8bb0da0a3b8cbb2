#include "base/record/record.h"

namespace foreshard::record {
namespace internal {
namespace {

Json schema_of_value(const Field& field, Json& definitions) {
  Json schema = field.schema(definitions);
  if (!field.schema_of_value.is_null()) schema = field.schema_of_value;
  if (field.doc.empty()) return schema;
  // In the drafts that editors know, keys next to a $ref are ignored.
  if (schema.contains("$ref")) schema = {{"allOf", Json::array({std::move(schema)})}};
  schema["description"] = field.doc;
  return schema;
}

}  // namespace

Json object_schema(const Fields& fields, Json& definitions) {
  Json schema = {{"type", "object"}};
  if (!fields.doc.empty()) schema["description"] = fields.doc;
  schema["properties"] = Json::object();
  schema["required"] = Json::array();
  schema["additionalProperties"] = false;
  if (!fields.id.empty()) {
    schema["properties"]["schema"] = {{"const", fields.id}};
    schema["required"].push_back("schema");
  }
  for (const Field& field : fields.fields) {
    schema["properties"][field.key] = schema_of_value(field, definitions);
    if (field.is_always_there) schema["required"].push_back(field.key);
  }
  return schema;
}

Json write(const Fields& fields, const void* object) {
  Json json = Json::object();
  if (!fields.id.empty()) json["schema"] = fields.id;
  for (const Field& field : fields.fields)
    if (auto value = field.write(object)) json[field.key] = *std::move(value);
  return json;
}

std::string read(const Fields& fields, const Json& json, void* object) {
  if (!json.is_object()) return ": no object";
  for (const Field& field : fields.fields) {
    if (!field.read) continue;
    const auto found = json.find(field.key);
    if (found == json.end()) {
      if (field.is_always_there) return "/" + field.key + ": missing";
      continue;
    }
    if (auto fault = field.read(*found, object); !fault.empty()) return "/" + field.key + fault;
  }
  return {};
}

Json refer(const Fields& fields, Json& definitions) {
  if (!definitions.contains(fields.name)) {
    definitions[fields.name] = nullptr;  // a record may contain itself
    definitions[fields.name] = object_schema(fields, definitions);
  }
  return {{"$ref", "#/definitions/" + fields.name}};
}

Json schema(const Fields& fields) {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", fields.name}};
  Json definitions = Json::object();
  schema.update(object_schema(fields, definitions));
  if (!definitions.empty()) schema["definitions"] = std::move(definitions);
  return schema;
}

Json or_null(Json schema) {
  if (schema.size() == 1 && schema.contains("type") && schema["type"].is_string())
    return {{"type", Json::array({schema["type"], "null"})}};
  return {{"anyOf", Json::array({std::move(schema), {{"type", "null"}}})}};
}

std::string words_of(const std::vector<yaml::internal::Name>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "'" : i + 1 == names.size() ? " or '" : ", '") + names[i].text + "'";
  return text;
}

}  // namespace internal

Json one_of(std::initializer_list<std::string_view> words) {
  Json list = Json::array();
  for (const std::string_view word : words) list.push_back(std::string(word));
  return {{"enum", std::move(list)}};
}

std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace foreshard::record
