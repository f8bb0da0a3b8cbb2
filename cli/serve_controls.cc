// The settings of a page of `foreshard serve` (serve.h).
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/yaml/describe.h"
#include "base/yaml/leaves.h"
#include "cli/kinds.h"
#include "cli/serve.h"

#include "strategies/schedule/schedule.h"

namespace foreshard::cli {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

constexpr std::string_view kStrategy = "strategy.";

// A group of the page, and its keys of a strategy.
struct Group {
  std::string_view name;
  std::vector<std::string_view> keys;
};

const std::vector<Group>& groups() {
  static const std::vector<Group> all{
      {"Sizes",
       {"tensor_parallel", "pipeline_parallel", "data_parallel", "context_parallel",
        "expert_parallel", "sequence_parallel"}},
      {"Batch", {"micro_batch", "global_batch"}},
      {"Pipeline", {"schedule", "virtual_stages"}},
      {"Memory", {"zero_stage", "recompute", "recompute_layers", "offload_optimizer"}},
      {"Arithmetic", {"precision", "quantization", "framework"}}};
  return all;
}

// The schema of each key of a strategy.
const Json& properties() {
  static const Json schema = yaml::json_schema<Strategy>();
  return schema["definitions"]["strategy"]["properties"];
}

Names choices_of(const Json& property) {
  if (property.contains("enum")) return property["enum"].get<Names>();
  return property.value("type", "") == "boolean" ? Names{"false", "true"} : Names{};
}

// Whether a value of the key can be no name of a file.
bool names_no_file(const Json& property) {
  static const std::set<std::string> plain{"integer", "number", "boolean", "array"};
  return property.contains("enum") || plain.contains(property.value("type", ""));
}

std::string label_of(std::string_view key) {
  std::string label(key.substr(key.rfind('.') + 1));
  std::ranges::replace(label, '_', ' ');
  return label;
}

std::string value_in(const std::vector<std::pair<std::string, std::string>>& values,
                     std::string_view key) {
  const auto found = std::ranges::find(values, key, [](auto& one) { return one.first; });
  return found == values.end() ? "" : found->second;
}

Names names_of(std::string_view kind, const Environment& environment, const std::string& own) {
  Names names = entries_of(*find_kind(kind), environment.catalogue);
  if (std::ranges::find(names, own) == names.end()) names.insert(names.begin(), own);
  return names;
}

Names schedule_names() {
  Names names;
  for (const schedule::Schedule& one : schedule::schedules()) names.emplace_back(one.name);
  return names;
}

page::ControlGroup cluster_group(const study::LoadedStudy& study, const Environment& environment) {
  page::ControlGroup group{.name = "Cluster", .controls = {}};
  if (!study.cluster.groups.empty() || !study.cluster.node) return group;
  const std::string& node = study.cluster.node->name;
  group.controls.push_back({.key = "cluster.nodes",
                            .label = "nodes",
                            .doc = "Nodes of the cluster.",
                            .value = std::to_string(study.cluster.nodes),
                            .lowest = "1",
                            .highest = "100000"});
  if (node.empty()) return group;
  group.controls.push_back({.key = "cluster.node",
                            .label = "node",
                            .doc = "A node of the catalogue, with its devices.",
                            .value = node,
                            .choices = names_of("node", environment, node)});
  return group;
}

page::Control control_of(std::string_view key, std::string value, const Environment& environment) {
  const Json& property = properties()[std::string(key)];
  page::Control control{.key = std::string(kStrategy) + std::string(key),
                        .label = label_of(key),
                        .doc = property.value("description", ""),
                        .value = std::move(value),
                        .choices = choices_of(property)};
  if (key == "framework") control.choices = names_of("framework", environment, control.value);
  if (key == "schedule") control.choices = schedule_names();
  if (!control.choices.empty()) return control;
  constexpr std::int64_t kFew = 8;
  const auto lowest = property["minimum"].get<std::int64_t>();
  const auto highest = property["maximum"].get<std::int64_t>();
  for (std::int64_t i = lowest; highest - lowest <= kFew && i <= highest; ++i)
    control.choices.push_back(std::to_string(i));
  control.lowest = property["minimum"].dump();
  control.highest = property["maximum"].dump();
  return control;
}

Error refusal(std::string_view key, std::string_view why) {
  return {Error::Code::kInvalidInput, fmt::format("{}: {}", key, why)};
}

const page::Control* find(const std::vector<page::ControlGroup>& groups, std::string_view key) {
  for (const page::ControlGroup& group : groups)
    for (const page::Control& control : group.controls)
      if (control.key == key) return &control;
  return nullptr;
}

Status fault_in(const std::string& key, const std::string& value, const page::Control* control) {
  if (control != nullptr) {
    const Names& choices = control->choices;
    if (choices.empty() || std::ranges::find(choices, value) != choices.end()) return {};
    const auto near = nearest_name(value, choices);
    return refusal(key, fmt::format("'{}' is none of its values{}", value,
                                    near ? fmt::format(": did you mean '{}'?", *near) : ""));
  }
  const bool of_strategy = key.starts_with(kStrategy);
  const auto property = properties().find(of_strategy ? key.substr(kStrategy.size()) : "");
  if (property == properties().end() || !names_no_file(*property))
    return refusal(key, "this page cannot set it; foreshard simulate --set can");
  return {};
}

}  // namespace

std::vector<page::ControlGroup> controls_of(const study::LoadedStudy& study,
                                            const Environment& environment) {
  const auto values = values_of(study);
  std::vector<page::ControlGroup> all{cluster_group(study, environment)};
  for (const Group& group : groups()) {
    page::ControlGroup& shown = all.emplace_back();
    shown.name = group.name;
    for (const std::string_view key : group.keys)
      shown.controls.push_back(control_of(
          key, value_in(values, std::string(kStrategy) + std::string(key)), environment));
  }
  return all;
}

std::vector<std::pair<std::string, std::string>> values_of(const study::LoadedStudy& study) {
  std::vector<std::pair<std::string, std::string>> values;
  values.emplace_back("cluster.nodes", std::to_string(study.cluster.nodes));
  if (study.cluster.node) values.emplace_back("cluster.node", study.cluster.node->name);
  const auto leaves = yaml::leaves(yaml::echo(study.strategy), "strategy");
  if (!leaves) return values;
  for (const yaml::Leaf& leaf : *leaves) {
    if (!properties().contains(leaf.path)) continue;
    const std::string text = leaf.list            ? "[" + join(leaf.words) + "]"
                             : leaf.words.empty() ? ""
                                                  : leaf.words.front();
    values.emplace_back(std::string(kStrategy) + leaf.path, text);
  }
  values.emplace_back(std::string(kStrategy) + "framework", study.strategy.framework.name);
  return values;
}

Result<std::vector<std::string>> asked_settings(const Json& asked,
                                                const std::vector<page::ControlGroup>& controls) {
  constexpr std::size_t kMost = 100;
  if (!asked.is_object() || !asked.contains("set") || !asked["set"].is_object())
    return refusal("set", "a request is {\"set\": {KEY: VALUE, ...}}");
  if (asked["set"].size() > kMost) return refusal("set", "at most 100 settings are taken");
  std::vector<std::string> sets;
  for (const auto& [key, value] : asked["set"].items()) {
    if (!value.is_string()) return refusal(key, "its value must be a text");
    const auto text = value.get<std::string>();
    FORESHARD_TRY(fault_in(key, text, find(controls, key)));
    sets.push_back(fmt::format("{}={}", key, text));
  }
  return sets;
}

}  // namespace foreshard::cli
