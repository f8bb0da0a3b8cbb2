// The questions that have a type of their own (foreshard/foreshard.h): their words, and the plain
// values of the JSON that comes back.
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/check.h"

#include "sim/search/explain.h"

// Included last: as clang reads the standard, a namespace of the library (search, reshard) may not
// follow a function with its name in an inline namespace.
#include "library/internal/asked.h"

namespace foreshard {
inline namespace v0 {
namespace {

using nlohmann::json;

Words& add(Words& words, const char* option, const auto& value) {
  words.emplace_back(option);
  if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>)
    words.push_back(std::to_string(value));
  else
    words.emplace_back(value);
  return words;
}

// The number, if there is one.
std::optional<double> number_in(const json& value) {
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

Prediction prediction_of(std::string text) {
  const json told = json::parse(text);
  const json& subject = told["study"];
  const json& step = told["step"];
  const json& rates = told["throughput"];
  const json& parts = told["breakdown_s"];
  const json& memory = told["memory"];
  const json& cost = told["cost"];
  constexpr double kNever = std::numeric_limits<double>::infinity();
  Prediction answer{.model = subject["model"],
                    .cluster = subject["cluster"],
                    .strategy = subject["strategy"],
                    .devices = subject["devices"],
                    .feasible = told["feasible"],
                    .step_seconds = number_in(step["time_s"]).value_or(kNever),
                    .step_seconds_low = number_in(step["low_s"]).value_or(kNever),
                    .step_seconds_high = number_in(step["high_s"]).value_or(kNever),
                    .samples_per_second = number_in(rates["samples_per_s"]).value_or(0),
                    .tokens_per_second = number_in(rates["tokens_per_s"]).value_or(0),
                    .tflops_per_device = number_in(rates["model_tflops_per_gpu"]).value_or(0),
                    .mfu = number_in(rates["mfu"]).value_or(0),
                    .breakdown = {.compute = parts["compute"],
                                  .optimizer = parts["optimizer"],
                                  .tensor_communication = parts["tp_comm"],
                                  .context_communication = parts["cp_comm"],
                                  .expert_communication = parts["ep_comm"],
                                  .pipeline_communication = parts["pp_comm"],
                                  .data_communication = parts["dp_comm"],
                                  .host = parts["host"],
                                  .pipeline_bubble = parts["pipeline_bubble"]},
                    .memory = {.peak_bytes = memory["peak_bytes"],
                               .capacity_bytes = memory["capacity_bytes"],
                               .reserve_bytes = memory["reserve_bytes"]},
                    .usd_per_step = number_in(cost["usd_per_step"]),
                    .joules_per_step = number_in(cost["joules_per_step"])};
  if (const auto training = cost.find("training"); training != cost.end() && training->is_object())
    answer.training_steps = number_in((*training)["steps"]);
  for (const json& warning : told["warnings"]) answer.warnings.push_back(warning["message"]);
  answer.json = std::move(text);
  return answer;
}

Candidate candidate_of(const json& told, const std::vector<yaml::Override>& settings) {
  Candidate candidate{.strategy = told["words"],
                      .fits = told["fits"],
                      .step_seconds = told["time_s"],
                      .step_seconds_low = told["low_s"],
                      .step_seconds_high = told["high_s"],
                      .mfu = told["mfu"],
                      .peak_bytes = told["peak_bytes"],
                      .idle_devices = told["idle_devices"],
                      .usd_per_step = number_in(told["usd_per_step"])};
  for (const yaml::Override& setting : settings)
    candidate.settings.push_back({setting.path, setting.value});
  return candidate;
}

SearchResult found_in(std::string text) {
  const auto read = search::read_result(text);
  FORESHARD_CHECK(read.has_value());
  if (!read->is_of_model())
    throw Failure(Failure::Kind::kUnsupported,
                  "search: the study is of a graph; run({\"search\", ...}) searches it");
  const json told = json::parse(text);
  SearchResult result{
      .considered = told["considered"],
      .certified = told["certified"],
      .gap = number_in(told["gap"]).value_or(std::numeric_limits<double>::infinity()),
      .partial = told["partial"],
      .needs_hosts = told["needs_hosts"]};
  for (std::size_t i = 0; i < told["best"].size(); ++i)
    result.best.push_back(candidate_of(told["best"][i], read->settings[i]));
  result.json = std::move(text);
  return result;
}

ReshardPlan plan_in(std::string text) {
  const json told = json::parse(text);
  const json& chosen = told["plan"];
  ReshardPlan plan{.name = chosen["name"],
                   .seconds = chosen["time_s"],
                   .lower_bound_seconds = told["lower_bound"]["time_s"]};
  for (const json& step : chosen["steps"])
    plan.steps.push_back({.primitive = step["primitive"],
                          .axes = step["axes"],
                          .seconds = step["closed_form_s"],
                          .bytes = step["exact_total_bytes"]});
  if (const auto baseline = told.find("baseline"); baseline != told.end() && baseline->is_object())
    plan.baseline_seconds = (*baseline)["time_s"];
  plan.json = std::move(text);
  return plan;
}

Words with_study(const char* command, const Study& study) {
  Words words = words_of(study);
  words.emplace(words.begin(), command);
  return add(words, "--format", "json");
}

}  // namespace

Prediction predict(const Study& study, const PredictOptions& options, const char* package,
                   const Hooks& hooks) {
  Words words = with_study("simulate", study);
  if (options.engine == Engine::kSimgrid) add(words, "--engine", "simgrid");
  if (!options.trace.empty()) add(words, "--trace", options.trace);
  return prediction_of(library::asked(words, hooks, library::catalogue_of(study, package)).text);
}

SearchResult search(const Study& study, const SearchOptions& options, const char* package,
                    const Hooks& hooks) {
  Words words = with_study("search", study);
  add(words, "--top", options.top);
  add(words, "--simulate", options.simulate);
  add(words, "--certify", options.certify);
  add(words, "--threads", options.threads);
  if (!options.space.empty()) add(words, "--space", options.space);
  if (options.level) add(words, "--level", *options.level);
  if (options.budget_seconds != 0)
    add(words, "--budget", std::to_string(options.budget_seconds) + " s");
  return found_in(library::asked(words, hooks, library::catalogue_of(study, package)).text);
}

ReshardPlan reshard(const Resharding& resharding, const char* package, const Hooks& hooks) {
  Words words{"reshard"};
  add(words, "--tensor", resharding.tensor);
  add(words, "--from", resharding.from);
  add(words, "--to", resharding.to);
  add(words, "--cluster", resharding.cluster);
  for (const Setting& one : resharding.settings) add(words, "--set", one.key + "=" + one.value);
  add(words, "--format", "json");
  return plan_in(library::asked(words, hooks, library::catalogue_of(resharding, package)).text);
}

}  // namespace v0
}  // namespace foreshard
