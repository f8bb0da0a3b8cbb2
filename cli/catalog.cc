#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/kinds.h"
#include "cli/options.h"
#include "cli/output.h"

#include "strategies/graph/operators/definition.h"
#include "strategies/schedule/schedule.h"

namespace foreshard::cli {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kIndent = 2;  // spaces per level of the JSON

// What `catalog` lists besides the kinds of files.
constexpr std::string_view kOperators = "operators";
constexpr std::string_view kSchedules = "schedules";

Result<ExitCode> print(std::string_view text) {
  FORESHARD_TRY(write_result("", text));  // An empty path is stdout.
  return kDone;
}

Json json_of(const SettingValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

std::vector<std::string> words_of_setting(const SettingDefinition& setting) {
  return {setting.words.begin(), setting.words.end()};
}

// The table of operators as Markdown, for people: each is a section with its documentation, its
// inputs and outputs, and its settings. docs/graph-format.md has it.
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
                                                     : "one of " + join(words_of_setting(setting));
      const std::string fallback =
          setting.required ? "**required**" : fmt::format("`{}`", describe(setting.fallback));
      text += fmt::format("| `{}` | {} | {} | {} |\n", setting.name, type, fallback, setting.doc);
    }
  }
  return text;
}

// The table of operators for programs: {"schema", "operators": [{"name", "doc", "inputs",
// "outputs", "differentiable", "view", "bodies", "settings": [...]}]}.
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
      if (!setting.words.empty()) entry["words"] = words_of_setting(setting);
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

// The command `foreshard catalog`: lists the entries of the catalogue by kind (kinds.h), the
// operators of graphs, or the pipeline schedules; `catalog show NAME` prints an entry.
class Catalog final : public Command {
 public:
  void declare(Declaration& declaration) override {
    declaration.argument(
        "KIND", kind_,
        "List only these: " + join(kind_names()) +
            "; or operators (the building blocks of graphs), or schedules (of pipelines).");
    add_format(declaration, format_, {"text", "json"});
    Declaration show =
        declaration.subcommand("show", show_, "Print one entry, defaults and sources included.",
                               "foreshard catalog show H100-SXM");
    show.required_argument("NAME", entry_, "Name of the entry, as files refer to it.");
  }

  Result<ExitCode> run(const Environment& environment) override {
    if (kind_ == kOperators && !show_) return operators();
    if (kind_ == kSchedules && !show_) return schedules();
    if (environment.catalogue.empty())
      return fail("there is no catalogue",
                  "give its folder with --configs DIR or $FORESHARD_CONFIGS");
    return show_ ? show(environment) : list(environment);
  }

 private:
  // Prints the entries of one kind, or of all. A kind without entries has a heading only.
  Result<ExitCode> list(const Environment& environment) const {
    const Kind* only = kind_.empty() ? nullptr : find_kind(kind_);
    if (!kind_.empty() && only == nullptr) {
      std::vector<std::string> names = kind_names();
      names.emplace_back(kOperators);
      names.emplace_back(kSchedules);
      if (is_entry(environment))
        return fail(fmt::format("'{}' is an entry of the catalogue, not a kind of them", kind_),
                    "foreshard catalog show " + kind_);
      const auto near = nearest_name(kind_, names);
      return fail(fmt::format("the catalogue has no '{}'", kind_),
                  near ? fmt::format("did you mean '{}'?", *near)
                       : "use " + quoted_choice(names, names.size()));
    }
    std::string text;
    Json entries = Json::object();
    for (const Kind& kind : kinds()) {
      if (only != nullptr && &kind != only) continue;
      const auto names = entries_of(kind, environment.catalogue);
      entries[std::string(kind.folder)] = names;
      text += fmt::format("{}{}: {}\n", text.empty() ? "" : "\n", kind.folder, kind.summary);
      for (const std::string& name : names) text += fmt::format("  {}\n", name);
    }
    const Json json{{"schema", "foreshard.catalog/1"}, {"entries", std::move(entries)}};
    return print(format_ == "json" ? json.dump(kIndent) + "\n" : text);
  }

  // Whether the argument KIND names an entry.
  bool is_entry(const Environment& environment) const {
    return std::ranges::any_of(kinds(), [&](const Kind& kind) {
      const auto names = entries_of(kind, environment.catalogue);
      return std::ranges::find(names, kind_) != names.end();
    });
  }

  // Prints the table of operators. It needs no catalogue, as schedules() needs none.
  Result<ExitCode> operators() const {
    return print(format_ == "json" ? operators_json().dump(kIndent) + "\n" : operators_markdown());
  }

  // "fewest_chunks": the least number of model chunks (virtual stages) per pipeline stage.
  Result<ExitCode> schedules() const {
    std::string text = "schedules: pipeline schedules, for strategy.schedule\n";
    Json list = Json::array();
    for (const schedule::Schedule& one : schedule::schedules()) {
      text += fmt::format("  {:<14} {}\n", one.name, one.summary);
      list.push_back({{"name", one.name},
                      {"summary", one.summary},
                      {"fewest_chunks", one.fewest_chunks},
                      {"splits_backward", one.splits}});
    }
    const Json json{{"schema", "foreshard.schedules/1"}, {"schedules", std::move(list)}};
    return print(format_ == "json" ? json.dump(kIndent) + "\n" : text);
  }

  // Prints an entry with defaults and sources. Names are unique only within a kind, so all entries
  // with this name are shown, separated by "---".
  Result<ExitCode> show(const Environment& environment) const {
    std::string text;
    std::vector<std::string> all;
    for (const Kind& kind : kinds()) {
      const auto names = entries_of(kind, environment.catalogue);
      all.insert(all.end(), names.begin(), names.end());
      if (std::ranges::find(names, entry_) == names.end()) continue;
      yaml::Loader loader({.catalogue = environment.catalogue});
      FORESHARD_ASSIGN(const auto echo, kind.echo_entry(loader, entry_));
      text += fmt::format("{}# {}: {}/{}\n{}", text.empty() ? "" : "---\n", kind.name, kind.folder,
                          entry_, echo);
    }
    if (text.empty())
      return fail(fmt::format("the catalogue has no '{}'", entry_), nearest(std::move(all)));
    return print(text);
  }

  // Suggests the entries that begin with the given name, else the entry with the most similar name.
  std::string nearest(std::vector<std::string> all) const {
    const auto near = nearest_name(entry_, all);
    const std::string begin = lower_case(entry_);
    std::erase_if(all, [&](const auto& name) { return !lower_case(name).starts_with(begin); });
    if (all.empty() && near) all = {*near};
    return all.empty() ? "foreshard catalog lists all"
                       : fmt::format("did you mean {}?", quoted_choice(all));
  }

  std::string kind_;    // argument KIND; empty: all kinds
  std::string format_;  // "text" or "json"
  bool show_ = false;   // whether the subcommand `show` was given
  std::string entry_;   // its argument NAME
};

}  // namespace

std::unique_ptr<Command> make_catalog() {
  return std::make_unique<Catalog>();
}

}  // namespace foreshard::cli
