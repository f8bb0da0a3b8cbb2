// A sweep's question and outcomes in memory and as text (results.h), for the store, the writers and
// comparisons.
#include "sim/sweep/results.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/record/record.h"
#include "base/shell_words.h"
#include "base/yaml/describe.h"

#include "sim/sweep/output.h"

namespace foreshard::sweep {
namespace {

using record::Json;
using record::Record;

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
      settings.emplace_back(key.substr(at.size() + value.size() + 1), text);
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
    for (const auto& [path, part] : settings_of_choice(question, axis, value)) set(path, part);
  }
  if (question.train) set("train", *question.train);
  for (const auto& [path, value] : outcome.settings) set(path, value);
  return command;
}

const Record<AxisNames>& record_of(const AxisNames*) {
  static const auto record =
      Record<AxisNames>("axis").field("name", &AxisNames::name).field("values", &AxisNames::values);
  return record;
}

const Record<Goal>& record_of(const Goal*) {
  static const auto record =
      Record<Goal>("goal")
          .field("within_s", &Goal::within)
          .field("budget_usd", &Goal::budget)
          .field("minimise", record::at<&Goal::minimise>);  // not read: it is the question's rank
  return record;
}

const Record<Question>& record_of(const Question*) {
  static const auto record = Record<Question>("question")
                                 .field("name", &Question::name)
                                 .field("description", &Question::description)
                                 .field("axes", &Question::axes)
                                 .field("searched", &Question::searched)
                                 .field("train", &Question::train)
                                 .field("rank", &Question::rank)
                                 .field("goal", &Question::goal)
                                 .field("sensitivities", &Question::sensitivities)
                                 .field("said", &Question::said);
  return record;
}

std::string text_of(const Question& question) {
  Json json = record::write(question);
  if (question.goal) json["goal"].erase("minimise");
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Question> question_in(std::string_view text) {
  const Error fault{Error::Code::kInvalidInput, "this is no question of a sweep"};
  const auto json = parsed_json<Json>(text);
  if (!json) return fault;
  auto read = record::read<Question>(*json);
  if (!read) return fault;
  Question question = *std::move(read);
  std::int64_t points = 1;
  for (const AxisNames& axis : question.axes) {
    const std::int64_t size = std::ssize(axis.values);
    if (size == 0 || size > limits::raised(limits::kPoints) / points) return fault;
    points *= size;
  }
  if (question.goal) question.goal->minimise = question.rank;
  return question;
}

Result<Results> results_in(std::string_view text) {
  const auto fault = [](const std::string& why) {
    return Error{Error::Code::kInvalidInput, "no results of a study: " + why};
  };
  const auto parsed = parsed_json<Json>(text);
  if (!parsed) return fault(parsed.error().message);
  const Json& json = *parsed;
  if (!json.is_object()) return fault("no JSON object");
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
                    json_words(exception.what())));
  }
}

std::int64_t Results::done() const {
  return std::ranges::count_if(outcomes, [](const auto& one) { return one.has_value(); });
}

}  // namespace foreshard::sweep
