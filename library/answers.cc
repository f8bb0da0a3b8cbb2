#include <chrono>
#include <cmath>
#include <limits>

#include "base/result.h"
#include "base/yaml/loader.h"

#include "sim/report/json.h"
#include "sim/report/predict.h"
#include "sim/search/output.h"
#include "sim/search/search.h"
#include "sim/study/catalogue.h"
#include "sim/study/study.h"
#include "sim/study/tensor_reshard.h"
#include "strategies/reshard/explain.h"

// Included last: as clang reads the standard, a namespace of the library (search, reshard) may not
// follow a function with its name in an inline namespace.
#include "library/foreshard/foreshard.h"

namespace foreshard {
inline namespace v0 {
namespace {

[[noreturn]] void fail(const Error& error) {
  Failure::Kind kind = Failure::Kind::kInvalidInput;
  switch (error.code) {
    case Error::Code::kInvalidInput:
      break;
    case Error::Code::kInfeasible:
      kind = Failure::Kind::kInfeasible;
      break;
    case Error::Code::kUnsupported:
      kind = Failure::Kind::kUnsupported;
      break;
    case Error::Code::kIo:
      kind = Failure::Kind::kIo;
      break;
  }
  throw Failure(kind, error.message);
}

template <class T>
T value_of(Result<T> result) {
  if (!result) fail(result.error());
  return *std::move(result);
}

void require(bool condition, const char* message) {
  if (!condition) throw Failure(Failure::Kind::kInvalidInput, message);
}

std::int64_t whole(Bytes size) {
  return std::llround(size.in_base());
}

yaml::Options options_of(const std::vector<Setting>& settings, const std::string& catalogue,
                         const char* package) {
  yaml::Options options;
  options.catalogue = value_of(study::find_catalogue(catalogue, "catalogue", package));
  for (const Setting& one : settings) options.overrides.push_back({one.key, one.value});
  return options;
}

study::LoadedStudy loaded(const Study& study, const char* package, bool sizes_matter) {
  const auto given = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional<std::string>(text);
  };
  return value_of(study::load_study({.study = given(study.file),
                                     .cluster = given(study.cluster),
                                     .model = given(study.model),
                                     .strategy = given(study.strategy),
                                     .communication = given(study.communication),
                                     .sizes_matter = sizes_matter},
                                    options_of(study.settings, study.catalogue, package)));
}

// The study as options of the command line.
search::Asked asked_of(const Study& study) {
  search::Asked asked{.study = study.file};
  for (const auto& [option, value] :
       {std::pair("--cluster", &study.cluster), std::pair("--model", &study.model),
        std::pair("--strategy", &study.strategy),
        std::pair("--communication", &study.communication)})
    if (!value->empty()) asked.options.push_back({option, *value});
  for (const Setting& setting : study.settings)
    asked.options.push_back({"--set", setting.key + "=" + setting.value});
  return asked;
}

Breakdown breakdown_of(const sim::Breakdown& breakdown) {
  return {.compute = breakdown.compute.in_base(),
          .optimizer = breakdown.optimizer.in_base(),
          .tensor_communication = breakdown.tensor.in_base(),
          .context_communication = breakdown.context.in_base(),
          .expert_communication = breakdown.expert.in_base(),
          .pipeline_communication = breakdown.pipeline.in_base(),
          .data_communication = breakdown.data.in_base(),
          .host = breakdown.host.in_base(),
          .pipeline_bubble = breakdown.bubble.in_base()};
}

Memory memory_of(const sim::Prediction& prediction) {
  Memory memory{.capacity_bytes = whole(prediction.memory_capacity),
                .reserve_bytes = whole(prediction.memory_reserve)};
  if (!prediction.classes.empty())
    memory.peak_bytes =
        whole(prediction.classes[static_cast<std::size_t>(prediction.worst_memory)].memory.peak);
  return memory;
}

std::optional<double> in_usd(std::optional<Dollars> usd) {
  return usd ? std::optional(*usd / 1_USD) : std::nullopt;
}

Prediction answer_of(const report::Report& report) {
  const sim::Prediction& of = report.prediction;
  Prediction answer;
  answer.model = report.subject.model;
  answer.cluster = report.subject.cluster;
  answer.strategy = report.subject.strategy;
  answer.devices = of.devices;
  answer.feasible = of.fits && !of.interruption;
  const auto if_it_ends = [&](Seconds time) {
    return of.interruption ? std::numeric_limits<double>::infinity() : time.in_base();
  };
  answer.step_seconds = if_it_ends(of.step);
  answer.step_seconds_low = if_it_ends(of.low);
  answer.step_seconds_high = if_it_ends(of.high);
  if (answer.step_seconds > 0) {
    answer.samples_per_second = of.samples / answer.step_seconds;
    answer.tokens_per_second = of.tokens / answer.step_seconds;
  }
  answer.tflops_per_device = of.model_tflops_per_device;
  answer.mfu = of.mfu;
  answer.breakdown = breakdown_of(of.breakdown);
  answer.memory = memory_of(of);
  answer.usd_per_step = in_usd(of.expense.usd());
  if (of.expense.energy) answer.joules_per_step = of.expense.energy->in_base();
  if (of.training) answer.training_steps = of.training->steps;
  for (const sim::Warning& warning : of.warnings) answer.warnings.push_back(warning.message);
  answer.json = report::to_json(report);
  return answer;
}

search::SearchSpace space_of(const std::string& text, const yaml::Options& options) {
  if (text.empty()) return {};
  yaml::Loader loader({.catalogue = options.catalogue});
  return value_of(text.starts_with('{') ? loader.read_text<search::SearchSpace>(text, "space")
                                        : loader.read_file<search::SearchSpace>(text));
}

Candidate candidate_of(const search::Simulated& one) {
  Candidate candidate{.strategy = foreshard::describe(one.strategy),
                      .settings = {},
                      .fits = one.fits,
                      .step_seconds = one.step.in_base(),
                      .step_seconds_low = one.low.in_base(),
                      .step_seconds_high = one.high.in_base(),
                      .mfu = one.mfu,
                      .peak_bytes = whole(one.peak),
                      .idle_devices = one.idle,
                      .usd_per_step = in_usd(one.usd)};
  for (yaml::Override& setting : search::settings_of(one))
    candidate.settings.push_back({std::move(setting.path), std::move(setting.value)});
  return candidate;
}

}  // namespace

Prediction predict(const Study& study, const PredictOptions& options, const char* package) {
  const bool simgrid = options.engine == Engine::kSimgrid;
  const sim::SimulateOptions how{
      .engine = simgrid ? sim::EngineKind::kSimgrid : sim::EngineKind::kFluid,
      .granularity = simgrid ? sim::Granularity::kStepwise : sim::Granularity::kFlat,
      .timeline = !options.trace.empty()};
  return answer_of(value_of(report::predict(loaded(study, package, true), how, options.trace)));
}

SearchResult search(const Study& study, const SearchOptions& options, const char* package) {
  require(!options.level || (*options.level >= 0 && *options.level <= 3), "level: 0, 1, 2 or 3");
  require(options.simulate >= 1, "simulate: at least 1");
  require(options.threads >= 1, "threads: at least 1");
  require(options.top >= 0 && options.certify >= 0 && options.budget_seconds >= 0,
          "top, certify and budget_seconds cannot be negative");
  const study::LoadedStudy question = loaded(study, package, false);
  search::SearchOptions how;
  how.space = space_of(options.space, options_of({}, study.catalogue, package));
  if (options.level) how.space.level = *options.level;
  how.simulate = options.simulate;
  how.certify = options.certify;
  how.threads = options.threads;
  if (options.budget_seconds > 0)
    how.time_limit = std::chrono::duration<double>(options.budget_seconds);
  const search::SearchResult found = value_of(search::run_search(question, how));
  SearchResult result;
  for (const search::Simulated& one : found.simulated) {
    if (std::ssize(result.best) == options.top) break;
    result.best.push_back(candidate_of(one));
  }
  result.considered = found.considered;
  result.certified = found.certified;
  result.gap = found.gap();
  result.partial = found.partial;
  result.needs_hosts = found.needs_hosts();
  result.json = search::search_json(question, found, options.top, asked_of(study));
  return result;
}

ReshardPlan reshard(const Resharding& resharding, const char* package) {
  const reshard::Explanation explanation = value_of(study::explain(
      value_of(study::load_reshard({.tensor = resharding.tensor,
                                    .from = resharding.from,
                                    .to = resharding.to,
                                    .cluster = resharding.cluster},
                                   options_of(resharding.settings, resharding.catalogue, package))),
      {}));
  const reshard::Choice& choice = explanation.choice;
  const reshard::Plan& chosen = choice.best().plan;
  ReshardPlan plan;
  plan.name = chosen.name;
  for (std::size_t i = 0; i < chosen.steps.size(); ++i) {
    const reshard::Step& step = chosen.steps[i];
    ReshardStep shown{.primitive = std::string(name_of(step.primitive)),
                      .axes = {},
                      .seconds = explanation.steps[i].time.in_base(),
                      .bytes = whole(explanation.steps[i].volume.exact_total)};
    for (const Axis axis : step.axes)
      shown.axes.push_back(step.to.mesh.axes[static_cast<std::size_t>(axis)].name);
    plan.steps.push_back(std::move(shown));
  }
  plan.seconds = choice.best().time().in_base();
  if (choice.baseline)
    plan.baseline_seconds = choice.alternatives[*choice.baseline].time().in_base();
  plan.lower_bound_seconds = choice.bound.time.in_base();
  plan.json = reshard::to_json(explanation);
  return plan;
}

std::string version() {
  return FORESHARD_VERSION;
}

}  // namespace v0
}  // namespace foreshard
