#include "cli/results.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/record/record.h"
#include "cli/internal/result_forms.h"
#include "evidence/report.h"

#include "sim/advise/output.h"
#include "sim/elastic/replan.h"
#include "sim/elastic/run.h"
#include "sim/report/json.h"
#include "sim/report/side_by_side.h"
#include "sim/search/explain.h"
#include "sim/search/graph/output.h"
#include "sim/search/output.h"
#include "sim/sweep/comparison.h"
#include "sim/sweep/output.h"
#include "strategies/conversion/conversion.h"
#include "strategies/reshard/explain.h"
#include "topology/plausibility.h"
#include "topology/summary.h"
#include "validate/compare/compare.h"
#include "validate/loop/validation.h"
#include "validate/measurement/measurement.h"

namespace foreshard::cli {
namespace {

using Json = nlohmann::ordered_json;

Json schema_of(const Json& form);

Json or_null(Json schema) {
  return {{"anyOf", {std::move(schema), {{"type", "null"}}}}};
}

std::vector<std::string> alternatives(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, '|');) all.push_back(word);
  return all;
}

// The schema of a value that is described as "number|null: What it is.".
Json schema_of_value(const std::string& text) {
  const auto colon = text.find(": ");
  const auto words = alternatives(text.substr(0, colon));
  Json schema = Json::object();
  if (words.front().starts_with('#')) {
    const Json reference = {{"$ref", "#/definitions/" + words.front().substr(1)}};
    // In the drafts that editors know, keys next to a $ref are ignored.
    schema = words.size() > 1 ? or_null(reference) : Json{{"allOf", Json::array({reference})}};
  } else if (words.front().starts_with('\'')) {
    for (const std::string& word : words)
      schema["enum"].push_back(word == "null" ? Json(nullptr)
                                              : Json(word.substr(1, word.size() - 2)));
  } else if (words.front() != "any") {
    schema["type"] = words.size() == 1 ? Json(words.front()) : Json(words);
  }
  if (colon != std::string::npos) schema["description"] = text.substr(colon + 2);
  return schema;
}

Json schema_of_list(const Json& form) {
  Json schema = {{"type", "array"}};
  if (form.size() == 1) schema["items"] = schema_of(form.front());
  if (form.size() < 2) return schema;
  for (const Json& member : form) schema["items"].push_back(schema_of(member));
  schema["minItems"] = form.size();
  schema["maxItems"] = form.size();
  return schema;
}

Json schema_of_object(const Json& form) {
  Json schema = {{"type", "object"},
                 {"properties", Json::object()},
                 {"required", Json::array()},
                 {"additionalProperties", false}};
  for (const auto& [key, value] : form.items()) {
    if (key.starts_with('#')) continue;
    if (key == "//") {
      schema["description"] = value;
      continue;
    }
    if (key == "*") {
      schema["additionalProperties"] = schema_of(value);
      continue;
    }
    std::string name = key;
    const bool optional = name.ends_with('?');
    if (optional) name.pop_back();
    const bool nullable = name.ends_with("|null");
    if (nullable) name.resize(name.size() - std::string_view("|null").size());
    schema["properties"][name] = nullable ? or_null(schema_of(value)) : schema_of(value);
    if (!optional) schema["required"].push_back(name);
  }
  return schema;
}

Json schema_of(const Json& form) {
  if (form.is_object()) return schema_of_object(form);
  return form.is_array() ? schema_of_list(form) : schema_of_value(form.get<std::string>());
}

struct ResultRecord {
  std::string_view name;  // "prediction"
  Json (*schema)();
};

// The results that a record (base/record/record.h) describes, sorted by name.
constexpr ResultRecord kRecords[] = {
    {"accuracy", record::schema<accuracy::Report>},
    {"advice", record::schema<advise::Advice>},
    {"arrivals", record::schema<measure::Arrivals>},
    {"catalog", catalog_schema},
    {"collectives", collectives_schema},
    {"comparison", record::schema<compare::Comparison>},
    {"elastic", record::schema<elastic::ElasticResult>},
    {"explanation", record::schema<search::ReadResult>},
    {"findings", record::schema<FindingsResult>},
    {"graph_search", record::schema<search::GraphSearchReport>},
    {"measurement", record::schema<measure::Measurement>},
    {"operators", operators_schema},
    {"prediction", record::schema<report::Report>},
    {"replan", record::schema<elastic::Replan>},
    {"reshard", record::schema<reshard::Explanation>},
    {"reshard_checkpoint", reshard_checkpoint_schema},
    {"reshard_strategy", record::schema<conversion::Explanation>},
    {"schedules", schedules_schema},
    {"search", record::schema<search::SearchReport>},
    {"side_by_side", record::schema<report::SideBySide>},
    {"sweep", record::schema<sweep::SweepReport>},
    {"sweep_comparison", record::schema<sweep::ComparisonReport>},
    {"topology", record::schema<ClusterSummary>},
    {"validation", record::schema<loop::Validation>},
    {"version", version_schema},
};

}  // namespace

std::optional<Json> result_schema(std::string_view name) {
  for (const ResultRecord& result : kRecords) {
    Json schema = result.schema();
    if (name == result.name || name == schema["title"].get<std::string>()) return schema;
  }
  for (const ResultForm& result : result_forms()) {
    const Json form = Json::parse(result.text);
    const auto id = form["schema"].get<std::string>();
    if (name != result.name && name != id) continue;
    Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", id}};
    schema.update(schema_of(form));
    schema["properties"]["schema"] = {{"const", id}};
    for (const auto& [key, value] : form.items())
      if (key.starts_with('#')) schema["definitions"][key.substr(1)] = schema_of(value);
    return schema;
  }
  return std::nullopt;
}

std::vector<std::string> result_names() {
  std::vector<std::string> names;
  for (const ResultRecord& result : kRecords) names.emplace_back(result.name);
  for (const ResultForm& result : result_forms()) names.emplace_back(result.name);
  std::ranges::sort(names);
  return names;
}

}  // namespace foreshard::cli
