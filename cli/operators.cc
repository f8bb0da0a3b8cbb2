#include "cli/operators.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"

#include "strategies/graph/operators/definition.h"

namespace foreshard::cli {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const SettingValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

std::vector<std::string> words_of(const SettingDefinition& setting) {
  return {setting.words.begin(), setting.words.end()};
}

}  // namespace

std::string operators_markdown() {
  std::string text;
  for (const OperatorDefinition& each : operator_definitions()) {
    text += fmt::format("{}### {}\n\n{}\n\n`{}` -> `{}`{}{}\n", text.empty() ? "" : "\n", each.name,
                        each.doc, each.inputs, each.outputs, each.view ? "; no kernel" : "",
                        each.gradient == nullptr ? "; no gradient" : "");
    if (each.settings.empty()) continue;
    text += "\n| setting | type | default | meaning |\n|---|---|---|---|\n";
    for (const SettingDefinition& setting : each.settings) {
      const std::string type = setting.words.empty() ? std::string(type_name_of(setting.fallback))
                                                     : "one of " + join(words_of(setting));
      const std::string fallback =
          setting.required ? "**required**" : fmt::format("`{}`", describe(setting.fallback));
      text += fmt::format("| `{}` | {} | {} | {} |\n", setting.name, type, fallback, setting.doc);
    }
  }
  return text;
}

Json operators_json() {
  Json list = Json::array();
  for (const OperatorDefinition& each : operator_definitions()) {
    Json settings = Json::array();
    for (const SettingDefinition& setting : each.settings) {
      Json entry{{"name", setting.name},
                 {"type", type_name_of(setting.fallback)},
                 {"required", setting.required},
                 {"doc", setting.doc}};
      if (!setting.required) entry["default"] = json_of(setting.fallback);
      if (!setting.words.empty()) entry["words"] = words_of(setting);
      settings.push_back(std::move(entry));
    }
    list.push_back({{"name", each.name},
                    {"doc", each.doc},
                    {"inputs", each.inputs},
                    {"outputs", each.outputs},
                    {"differentiable", each.gradient != nullptr},
                    {"view", each.view},
                    {"bodies", each.bodies},
                    {"settings", std::move(settings)}});
  }
  return {{"schema", "foreshard.operators/1"}, {"operators", std::move(list)}};
}

}  // namespace foreshard::cli
