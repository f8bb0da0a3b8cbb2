#include "sim/sweep/results.h"

#include <algorithm>

#include "sim/sweep/internal/json.h"

namespace foreshard::sweep {
namespace {

using internal::Json;
using internal::or_null;

std::optional<Measure> measure_in(const Json& json) {
  return yaml_names(static_cast<const Measure*>(nullptr)).find(json.get<std::string>());
}

}  // namespace

Question question_of(const LoadedSweep& sweep) {
  Question question{.name = sweep.name,
                    .description = sweep.sweep.description,
                    .axes = names_of(sweep.sweep),
                    .searched = sweep.sweep.search.has_value(),
                    .train = sweep.sweep.train,
                    .rank = sweep.sweep.rank.value_or(Measure::kTime),
                    .goal = sweep.sweep.goal};
  if (question.goal) question.rank = question.goal->minimise;
  return question;
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
               {"goal", nullptr}};
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
    return question;
  } catch (const Json::exception&) {
    return fault();
  }
}

std::int64_t Results::done() const {
  return std::ranges::count_if(outcomes, [](const auto& one) { return one.has_value(); });
}

}  // namespace foreshard::sweep
