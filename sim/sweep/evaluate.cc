#include "sim/sweep/evaluate.h"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/digest/sha256.h"
#include "base/quantity.h"
#include "base/yaml/describe.h"

#include "sim/search/output.h"
#include "sim/search/search.h"
#include "sim/study/run.h"
#include "sim/sweep/grid.h"

namespace foreshard::sweep {
namespace {

study::StudyFiles files_of(const LoadedSweep& sweep) {
  const auto part = [&](const std::optional<yaml::Written>& written) {
    return written ? std::optional(seen_from_here(*written, sweep.folder)) : std::nullopt;
  };
  study::StudyFiles files{.cluster = part(sweep.sweep.cluster),
                          .model = part(sweep.sweep.model),
                          .strategy = part(sweep.sweep.strategy),
                          .communication = part(sweep.sweep.communication),
                          .sizes_matter = !sweep.sweep.search.has_value()};
  if (!sweep.sweep.study.empty()) files.study = seen_from_here({sweep.sweep.study}, sweep.folder);
  return files;
}

std::string digest_of(const Setup& setup, const study::StudyFiles& files,
                      const std::vector<yaml::Override>& overrides,
                      const std::vector<yaml::Input>& inputs, const std::string& fault) {
  Sha256 digest;
  // Each part with its length before it: no two lists of parts are the same bytes.
  const auto add = [&](std::string_view part) {
    digest.update(fmt::format("{}:", part.size()));
    digest.update(part);
  };
  add(setup.version);
  for (const auto* part : {&files.cluster, &files.model, &files.strategy, &files.communication})
    add(part->value_or(""));
  add(std::to_string(overrides.size()));
  for (const yaml::Override& each : overrides) {
    add(each.path);
    add(each.value);
  }
  const auto& search = setup.sweep.sweep.search;
  add(search ? yaml::echo(*search) : "");
  for (const yaml::Input& input : inputs) {
    add(input.path);
    add(sha256(input.bytes));
  }
  add(fault);
  return digest.finish();
}

study::LoadedStudy const& study_of(const Point& point) {
  return std::get<study::LoadedStudy>(point.state);
}

Outcome named(const study::LoadedStudy& study) {
  Outcome outcome;
  outcome.model = study.model.name;
  outcome.cluster = study.cluster.name;
  outcome.strategy = describe(study.strategy);
  return outcome;
}

// An answer for an error of a point that was loaded.
Result<Outcome> outcome_of(Error error, Outcome outcome) {
  if (error.code == Error::Code::kIo) return error;
  outcome.status =
      error.code == Error::Code::kInfeasible ? PointStatus::kInfeasible : PointStatus::kInvalid;
  outcome.why = std::move(error.message);
  return outcome;
}

// An outcome reads back as it was written, in whole bytes.
Bytes rounded(Bytes bytes) {
  return std::round(bytes.in_base()) * 1_B;
}

std::string too_large(Bytes peak, Bytes room) {
  return fmt::format("needs {}, {} more than the {} that a device has for tensors", format(peak),
                     format(peak - room), format(room));
}

Result<Outcome> simulated(const study::LoadedStudy& study) {
  Outcome outcome = named(study);
  auto run = study::run_study(study, {.critical_path = false});
  if (!run) return outcome_of(run.error(), std::move(outcome));
  const sim::Prediction& prediction = run->prediction;
  const Bytes room = rounded(prediction.memory_capacity - prediction.memory_reserve);
  const Bytes peak =
      rounded(prediction.classes[static_cast<std::size_t>(prediction.worst_memory)].memory.peak);
  outcome.status = PointStatus::kInfeasible;
  if (prediction.interruption) {
    outcome.why = "the step never ends: what it uses fails";
    return outcome;
  }
  if (!prediction.fits) {
    outcome.why = too_large(peak, room);
    outcome.missing = peak - room;
    return outcome;
  }
  outcome.status = PointStatus::kOk;
  outcome.figures = {.step = prediction.step,
                     .low = prediction.low,
                     .high = prediction.high,
                     .samples = prediction.samples,
                     .tokens = prediction.tokens,
                     .mfu = prediction.mfu,
                     .tflops_per_device = prediction.model_tflops_per_device,
                     .devices = prediction.devices,
                     .idle = prediction.idle,
                     .peak = peak,
                     .capacity = room,
                     .rent = prediction.expense.rent,
                     .energy = prediction.expense.energy,
                     .training_steps = prediction.training
                                           ? std::optional(prediction.training->steps)
                                           : std::nullopt};
  return outcome;
}

Outcome nothing_fits(const search::SearchResult& result, Outcome outcome) {
  outcome.status = PointStatus::kInfeasible;
  if (result.nearest) {
    const search::Estimate& needs = result.nearest->estimate;
    outcome.strategy = describe(result.nearest->strategy);
    outcome.missing = rounded(needs.peak - needs.memory);
    outcome.why = "no strategy fits; the closest " + too_large(needs.peak, needs.memory);
  } else if (!result.no_route.empty()) {
    outcome.why = result.no_route;
  } else {
    outcome.why = "none of the strategies that were simulated fits; more of them might";
  }
  return outcome;
}

Result<Outcome> searched(const Setup& setup, std::int64_t index, const study::LoadedStudy& study) {
  const PointSearch& wanted = *setup.sweep.sweep.search;
  Outcome outcome = named(study);
  outcome.strategy.clear();
  const auto result = search::run_search(study, {.space = *wanted.space,
                                                 .simulate = wanted.simulate,
                                                 .certify = wanted.certify,
                                                 .threads = setup.search_threads});
  if (!result) return outcome_of(result.error(), std::move(outcome));
  if (result->simulated.empty() || !result->simulated.front().fits)
    return nothing_fits(*result, std::move(outcome));
  const std::vector<yaml::Override> found = search::settings_of(result->simulated.front());
  std::vector<yaml::Override> overrides = overrides_of(setup.sweep, index);
  overrides.insert(overrides.end(), found.begin(), found.end());
  study::StudyFiles files = files_of(setup.sweep);
  files.sizes_matter = true;
  const auto best =
      study::load_study(files, {.catalogue = setup.catalogue, .overrides = std::move(overrides)});
  if (!best) return outcome_of(best.error(), std::move(outcome));
  FORESHARD_ASSIGN(outcome, simulated(*best));
  for (const yaml::Override& each : found) outcome.settings.push_back({each.path, each.value});
  return outcome;
}

}  // namespace

Result<Point> load_point(const Setup& setup, std::int64_t index) {
  const study::StudyFiles files = files_of(setup.sweep);
  const std::vector<yaml::Override> overrides = overrides_of(setup.sweep, index);
  auto study = study::load_study(files, {.catalogue = setup.catalogue, .overrides = overrides});
  if (study) {
    std::string key = digest_of(setup, files, overrides, study->inputs, "");
    return Point{.key = std::move(key), .state = *std::move(study)};
  }
  if (study.error().code == Error::Code::kIo) return study.error();
  Outcome outcome;
  outcome.why = study.error().message;
  std::string key = digest_of(setup, files, overrides, {}, outcome.why);
  return Point{.key = std::move(key), .state = std::move(outcome)};
}

Result<Outcome> outcome_at(const Setup& setup, std::int64_t index, const Point& point) {
  if (const auto* outcome = std::get_if<Outcome>(&point.state)) return *outcome;
  return setup.sweep.sweep.search ? searched(setup, index, study_of(point))
                                  : simulated(study_of(point));
}

}  // namespace foreshard::sweep
