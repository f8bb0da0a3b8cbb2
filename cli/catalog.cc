#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/record/record.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/kinds.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/results.h"

#include "strategies/graph/operators/definition.h"
#include "strategies/schedule/schedule.h"

namespace foreshard {

using record::Record;

const Record<SettingDefinition>& record_of(const SettingDefinition*) {
  static const auto record =
      Record<SettingDefinition>("setting")
          .field("name", &SettingDefinition::name)
          .field("type", [](const SettingDefinition& of) { return type_name_of(of.fallback); })
          .field("required", &SettingDefinition::required)
          .field("doc", &SettingDefinition::doc)
          .sometimes("default",
                     [](const SettingDefinition& of) {
                       const auto json_of = [](const auto& value) { return record::Json(value); };
                       return of.required ? std::nullopt
                                          : std::optional(std::visit(json_of, of.fallback));
                     })
          .sometimes("words", record::unless_empty<&SettingDefinition::words>,
                     "Values that a text may have.");
  return record;
}

const Record<OperatorDefinition>& record_of(const OperatorDefinition*) {
  static const auto record =
      Record<OperatorDefinition>("operator")
          .field("name", &OperatorDefinition::name)
          .field("doc", &OperatorDefinition::doc)
          .field("inputs", &OperatorDefinition::inputs)
          .field("outputs", &OperatorDefinition::outputs)
          .field(
              "differentiable", [](const OperatorDefinition& of) { return of.gradient != nullptr; },
              "Whether it has a gradient.")
          .field("view", &OperatorDefinition::view, "Whether its output is its input's memory.")
          .field("bodies", &OperatorDefinition::bodies, "Number of sub-graphs.")
          .field("settings", &OperatorDefinition::settings);
  return record;
}

namespace schedule {

const Record<Schedule>& record_of(const Schedule*) {
  static const auto record =
      Record<Schedule>("schedule")
          .field("name", &Schedule::name)
          .field("summary", &Schedule::summary)
          .field("fewest_chunks", &Schedule::fewest_chunks,
                 "Fewest model chunks (virtual stages) per pipeline stage.")
          .field("splits_backward", &Schedule::splits,
                 "Whether gradients of weights run apart from those of inputs.");
  return record;
}

}  // namespace schedule
}  // namespace foreshard

namespace foreshard::cli {
namespace {

// What `catalog` lists besides the kinds of files.
constexpr std::string_view kOperators = "operators";
constexpr std::string_view kSchedules = "schedules";

Result<ExitCode> print(std::string_view text) {
  FORESHARD_TRY(write_result("", text));  // An empty path is stdout.
  return kDone;
}

// A result with one list.
template <class List>
struct Listed {
  List all;
};

using Entries = Listed<std::vector<std::pair<std::string, std::vector<std::string>>>>;
const Record<Entries>& record_of(const Entries*) {
  static const auto record =
      Record<Entries>::result("foreshard.catalog/1", "What the catalogue holds (catalog).")
          .field("entries", &Entries::all, "Names by folder.");
  return record;
}

using Operators = Listed<std::vector<OperatorDefinition>>;
const Record<Operators>& record_of(const Operators*) {
  static const auto record =
      Record<Operators>::result("foreshard.operators/1",
                                "The operators that graphs are made of (catalog operators).")
          .field("operators", &Operators::all);
  return record;
}

using Schedules = Listed<std::vector<schedule::Schedule>>;
const Record<Schedules>& record_of(const Schedules*) {
  static const auto record =
      Record<Schedules>::result("foreshard.schedules/1", "Pipeline schedules (catalog schedules).")
          .field("schedules", &Schedules::all);
  return record;
}

template <class Result>
std::string json_text(const Result& result) {
  return record::text_of(record::write(result), 2);
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
    const FileKind* only = kind_.empty() ? nullptr : find_kind(kind_);
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
    Page page(paper_for(""));
    Entries entries;
    for (const FileKind& kind : kinds()) {
      if (only != nullptr && &kind != only) continue;
      const auto names = entries_of(kind, environment.catalogue);
      entries.all.emplace_back(kind.folder, names);
      page.line(
          fmt::format("{}{}: {}", entries.all.size() == 1 ? "" : "\n", kind.folder, kind.summary));
      for (const std::string& name : names) page.line("  " + name);
    }
    return print(format_ == "json" ? json_text(entries) : std::move(page).take());
  }

  // Whether the argument KIND names an entry.
  bool is_entry(const Environment& environment) const {
    return std::ranges::any_of(kinds(), [&](const FileKind& kind) {
      const auto names = entries_of(kind, environment.catalogue);
      return std::ranges::find(names, kind_) != names.end();
    });
  }

  // Prints the table of operators. It needs no catalogue, as schedules() needs none.
  Result<ExitCode> operators() const {
    const auto all = operator_definitions();
    return print(format_ == "json" ? json_text(Operators{{all.begin(), all.end()}})
                                   : operators_markdown());
  }

  Result<ExitCode> schedules() const {
    const auto all = schedule::schedules();
    if (format_ == "json") return print(json_text(Schedules{{all.begin(), all.end()}}));
    Page page(paper_for(""));
    page.line("schedules: pipeline schedules, for strategy.schedule");
    TextTable table({"<", "<"});
    for (const schedule::Schedule& one : all) table.row(one.name, one.summary);
    page.table(table);
    return print(std::move(page).take());
  }

  // Prints an entry with defaults and sources. Names are unique only within a kind, so all entries
  // with this name are shown, separated by "---".
  Result<ExitCode> show(const Environment& environment) const {
    std::string text;
    std::vector<std::string> all;
    for (const FileKind& kind : kinds()) {
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

record::Json catalog_schema() {
  return record::schema<Entries>();
}
record::Json operators_schema() {
  return record::schema<Operators>();
}
record::Json schedules_schema() {
  return record::schema<Schedules>();
}

std::unique_ptr<Command> make_catalog() {
  return std::make_unique<Catalog>();
}

}  // namespace foreshard::cli
