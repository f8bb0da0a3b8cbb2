#include "sim/sweep/results.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/parser_words.h"
#include "base/shell_words.h"
#include "base/yaml/describe.h"

#include "sim/sweep/internal/json.h"
#include "sim/sweep/output.h"

namespace foreshard::sweep {
namespace {

using internal::Json;
using internal::or_null;

std::optional<Measure> measure_in(const Json& json) {
  return yaml_names(static_cast<const Measure*>(nullptr)).find(json.get<std::string>());
}

std::map<std::string, std::string> said_by(const Sweep& sweep) {
  std::map<std::string, std::string> said;
  if (!sweep.study.empty()) said["study"] = sweep.study;
  for (const auto& [key, part] : {std::pair("cluster", &sweep.cluster),
                                  {"model", &sweep.model},
                                  {"strategy", &sweep.strategy},
                                  {"communication", &sweep.communication}})
    if (*part) said[key] = (*part)->text;
  for (const auto& [key, value] : sweep.set) said["set." + key] = value.text;
  if (sweep.search) said["search"] = yaml::echo(*sweep.search);
  if (sweep.train) said["train"] = *sweep.train;
  for (const Axis& axis : sweep.axes) {
    const std::string at = "axes." + axis.name;
    if (!axis.key.empty()) said[at] = axis.key;
    for (const Choice& choice : axis.choices)
      for (const auto& [key, value] : choice.set)
        said[fmt::format("{}.{}.{}", at, choice.name, key)] = value.text;
  }
  return said;
}

}  // namespace

Question question_of(const LoadedSweep& sweep) {
  Question question{.name = sweep.name,
                    .description = sweep.sweep.description,
                    .axes = names_of(sweep.sweep),
                    .searched = sweep.sweep.search.has_value(),
                    .train = sweep.sweep.train,
                    .rank = sweep.sweep.rank.value_or(Measure::kTime),
                    .goal = sweep.sweep.goal,
                    .sensitivities = sweep.sweep.sensitivities,
                    .said = said_by(sweep.sweep)};
  if (question.goal) question.rank = question.goal->minimise;
  return question;
}

namespace {

// The settings of a choice, with the keys of said_by(). A name may be the beginning of another one.
std::vector<Setting> settings_of_choice(const Question& question, const AxisNames& axis,
                                        const std::string& value) {
  const std::string at = "axes." + axis.name + ".";
  std::vector<Setting> settings;
  for (const auto& [key, text] : question.said) {
    if (!key.starts_with(at)) continue;
    const std::string* longest = nullptr;
    for (const std::string& name : axis.values)
      if (key.starts_with(at + name + ".") && (longest == nullptr || name.size() > longest->size()))
        longest = &name;
    if (longest != nullptr && *longest == value)
      settings.push_back({key.substr(at.size() + value.size() + 1), text});
  }
  return settings;
}

}  // namespace

std::string command_of(const Question& question, std::size_t point, const Outcome& outcome) {
  std::string command = "foreshard simulate";
  const auto said = [&](const std::string& key) {
    const auto found = question.said.find(key);
    return found == question.said.end() ? nullptr : &found->second;
  };
  if (const std::string* study = said("study")) command += " " + shell_word(*study);
  for (const char* part : {"cluster", "model", "strategy", "communication"})
    if (const std::string* text = said(part))
      command += fmt::format(" --{} {}", part, shell_word(seen_from_here({*text}, "")));
  const auto set = [&](const std::string& key, const std::string& value) {
    command += " --set " + shell_word(fmt::format("{}={}", key, seen_from_here({value}, "")));
  };
  constexpr std::string_view kSet = "set.";
  for (const auto& [key, text] : question.said)
    if (key.starts_with(kSet)) set(key.substr(kSet.size()), text);
  const auto position = position_of(static_cast<std::int64_t>(point), question.axes);
  for (std::size_t i = 0; i < position.size(); ++i) {
    const AxisNames& axis = question.axes[i];
    const std::string& value = axis.values[position[i]];
    if (const std::string* key = said("axes." + axis.name)) {
      set(*key, value);
      continue;
    }
    for (const Setting& each : settings_of_choice(question, axis, value))
      set(each.path, each.value);
  }
  if (question.train) set("train", *question.train);
  for (const Setting& each : outcome.settings) set(each.path, each.value);
  return command;
}

std::string text_of(const Question& question) {
  Json axes = Json::array();
  for (const AxisNames& axis : question.axes)
    axes.push_back({{"name", axis.name}, {"values", axis.values}});
  Json json = {{"name", question.name},
               {"description", question.description},
               {"axes", std::move(axes)},
               {"searched", question.searched},
               {"train", or_null(question.train)},
               {"rank", yaml::name_of(question.rank)},
               {"goal", nullptr},
               {"sensitivities", question.sensitivities},
               {"said", question.said}};
  if (question.goal) {
    const Goal& goal = *question.goal;
    json["goal"] = {{"within_s", internal::known(goal.within)},
                    {"budget_usd", internal::known(goal.budget)}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Question> question_in(std::string_view text) {
  const auto fault = [] {
    return Error{Error::Code::kInvalidInput, "this is no question of a sweep"};
  };
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return fault();
  try {
    Question question;
    question.name = json.at("name");
    question.description = json.at("description");
    std::int64_t points = 1;
    for (const Json& axis : json.at("axes")) {
      question.axes.push_back({axis.at("name"), axis.at("values")});
      const std::int64_t size = std::ssize(question.axes.back().values);
      if (size == 0 || size > kMostPoints / points) return fault();
      points *= size;
    }
    question.searched = json.at("searched");
    if (!json.at("train").is_null()) question.train = json.at("train").get<std::string>();
    const auto rank = measure_in(json.at("rank"));
    if (!rank) return fault();
    question.rank = *rank;
    if (const Json& goal = json.at("goal"); !goal.is_null()) {
      question.goal = Goal{.train = {}, .within = {}, .budget = {}, .minimise = question.rank};
      if (!goal.at("within_s").is_null())
        question.goal->within = Seconds::from_base(goal.at("within_s"));
      if (!goal.at("budget_usd").is_null())
        question.goal->budget = Dollars::from_base(goal.at("budget_usd"));
    }
    question.sensitivities = json.at("sensitivities");
    question.said = json.at("said").get<std::map<std::string, std::string>>();
    return question;
  } catch (const Json::exception&) {
    return fault();
  }
}

Result<Results> results_in(std::string_view text) {
  const auto fault = [](const std::string& why) {
    return Error{Error::Code::kInvalidInput, "no results of a study: " + why};
  };
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return fault("no JSON object");
  try {
    if (json.at("schema") != kSweepSchema)
      return fault(fmt::format("its schema is {}, not '{}'", json["schema"].dump(), kSweepSchema));
    Json asked = {{"rank", json.at("ranked_by")},
                  {"sensitivities", json.at("sensitivities")},
                  {"said", json.at("inputs")}};
    for (const char* key : {"name", "description", "axes", "searched", "train", "goal"})
      asked[key] = json.at(key);
    FORESHARD_ASSIGN(Question question, question_in(asked.dump()));
    Results results{.question = std::move(question), .outcomes = {}};
    results.outcomes.resize(static_cast<std::size_t>(size_of(results.question.axes)));
    for (const Json& point : json.at("results")) {
      const auto index = point.at("point").get<std::size_t>();
      if (index >= results.outcomes.size()) return fault(fmt::format("it has a point {}", index));
      FORESHARD_ASSIGN(results.outcomes[index], outcome_in(point.dump()));
    }
    return results;
  } catch (const Json::exception& exception) {
    return fault(
        fmt::format("it is not what this version writes ({}); foreshard study export "
                    "writes it again from its results file",
                    parser_words(exception.what())));
  }
}

std::int64_t Results::done() const {
  return std::ranges::count_if(outcomes, [](const auto& one) { return one.has_value(); });
}

}  // namespace foreshard::sweep
