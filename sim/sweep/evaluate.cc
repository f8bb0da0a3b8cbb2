// Evaluates a point of a sweep (evaluate.h), for run.cc: loads its study, searches if the sweep
// does, simulates. A point that fails has an outcome with the reason.
#include "sim/sweep/evaluate.h"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/digest/sha256.h"
#include "base/quantity.h"
#include "base/text.h"
#include "base/yaml/describe.h"
#include "base/yaml/quoted.h"

#include "sim/search/output.h"
#include "sim/search/search.h"
#include "sim/search/space.h"
#include "sim/simulate/sensitivity.h"
#include "sim/study/evidence.h"
#include "sim/study/records.h"
#include "sim/study/run.h"
#include "sim/sweep/grid.h"
#include "sim/sweep/results.h"

namespace foreshard::sweep {
namespace {

study::StudyFiles files_of(const LoadedSweep& sweep) {
  const auto part = [&](const std::optional<yaml::Written>& written) {
    return written ? std::optional(unquoted(seen_from_here(*written, sweep.folder))) : std::nullopt;
  };
  study::StudyFiles files{.cluster = part(sweep.sweep.cluster),
                          .model = part(sweep.sweep.model),
                          .strategy = part(sweep.sweep.strategy),
                          .communication = part(sweep.sweep.communication),
                          .sizes_matter = !sweep.sweep.search.has_value()};
  if (!sweep.sweep.study.empty()) files.study = seen_from_here({sweep.sweep.study}, sweep.folder);
  return files;
}

std::string digest_of(const Setup& setup, std::int64_t index,
                      const std::vector<yaml::Input>& inputs, const std::string& fault) {
  Sha256 digest;
  // Each part is preceded by its length: different lists of parts never give the same bytes.
  const auto add = [&](std::string_view part) {
    digest.update(fmt::format("{}:", part.size()));
    digest.update(part);
  };
  const Sweep& sweep = setup.sweep.sweep;
  add(setup.version);
  for (const auto* part : {&sweep.cluster, &sweep.model, &sweep.strategy, &sweep.communication})
    add(*part ? (*part)->text : "");
  const std::vector<PointSetting> settings = settings_of(setup.sweep, index);
  add(std::to_string(settings.size()));
  for (const PointSetting& each : settings) {
    add(each.path);
    add(each.value.text);
  }
  add(sweep.search ? yaml::echo(*sweep.search) : "");
  add(sweep.sensitivities ? "sensitivities" : "");
  for (const yaml::Input& input : inputs) {
    // The file's own name counts, as names of imported models come from it.
    add(std::filesystem::path(input.path).filename().string());
    add(sha256(input.bytes));
  }
  add(fault);
  return digest.finish();
}

void replace_all(std::string& text, const std::string& part, const std::string& by) {
  if (part.empty()) return;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += by.size())
    text.replace(at, part.size(), by);
}

// Removes `folder` from paths that begin with it.
void strip_paths(std::string& text, const std::string& folder) {
  if (folder.empty()) return;
  constexpr std::string_view kBefore = " '\"\n(=:[{";
  for (std::size_t at = 0; (at = text.find(folder, at)) != std::string::npos;) {
    if (at == 0 || kBefore.find(text[at - 1]) != std::string_view::npos)
      text.erase(at, folder.size());
    else
      ++at;
  }
}

// A message about a point for the author of the sweep: with the places in its file, and the same
// wherever it is run from.
std::string shown(const Setup& setup, std::int64_t index, std::string message) {
  const LoadedSweep& loaded = setup.sweep;
  const auto name = [&](const std::string& path, const std::string& value,
                        const std::string& place) {
    replace_all(message, fmt::format("--set {}={}", path, value),
                fmt::format("{}: {} ({}: {})", loaded.file, place, path, value));
  };
  for (const PointSetting& each : settings_of(loaded, index))
    name(each.path, seen_from_here(each.value, loaded.folder), each.place);
  const study::StudyFiles files = files_of(loaded);
  for (const auto& [key, part] : {std::pair("cluster", &files.cluster),
                                  {"model", &files.model},
                                  {"strategy", &files.strategy},
                                  {"communication", &files.communication}}) {
    if (!*part) continue;
    const bool mapping = (*part)->starts_with('{');
    name(key, mapping ? **part : yaml::quoted(**part), key);
  }
  replace_all(message, "command line:", loaded.file + ", its parts:");
  const std::filesystem::path folder = loaded.folder / "";
  strip_paths(message, folder.string());
  strip_paths(message, folder.lexically_normal().string());
  return message;
}

study::LoadedStudy const& study_of(const Point& point) {
  return std::get<study::LoadedStudy>(point.state);
}

Outcome named(const study::LoadedStudy& study) {
  Outcome outcome;
  outcome.model = study.model.name;
  outcome.cluster = study.cluster.name;
  outcome.strategy = search::in_words(study.strategy);
  return outcome;
}

// The text of check_memory (sim/simulate/memory_limit.h) about the limit: `study` has no such
// option.
constexpr std::string_view kOfMaxMemory = " of --max-memory (by default what is free here)";

// The outcome for an error of a point that was loaded.
Result<Outcome> outcome_of(Error error, Outcome outcome) {
  if (error.code == Error::Code::kIo) return error;
  outcome.status =
      error.code == Error::Code::kInfeasible ? PointStatus::kInfeasible : PointStatus::kInvalid;
  outcome.why = std::move(error.message);
  return outcome;
}

// Rounds to whole bytes, so that an outcome reads back as it was written.
Bytes rounded(Bytes bytes) {
  return std::round(bytes.in_base()) * 1_B;
}

std::string too_large(Bytes peak, Bytes room) {
  return fmt::format("needs {}, {} more than the {} that a device has for tensors", format(peak),
                     format(peak - room), format(room));
}

std::vector<Term> terms_of(const sim::Breakdown& breakdown) {
  std::vector<Term> terms;
  terms.reserve(sim::kBreakdownParts.size());
  for (const sim::BreakdownPart& part : sim::kBreakdownParts)
    terms.emplace_back(part.key, breakdown.*part.time);
  return terms;
}

Result<std::vector<Worth>> worth_of(const study::LoadedStudy& study, const study::StudyRun& run,
                                    const sim::SimulateOptions& options) {
  if (study.disturbances)
    return Error{Error::Code::kInvalidInput,
                 "what faster parts buy is told of steps that nothing disturbs; leave out "
                 "disturbances here, or sensitivities"};
  FORESHARD_ASSIGN(const auto found,
                   sim::sensitivities_of(run.cluster, run.program, study.communication, options));
  std::vector<Worth> worth;
  worth.reserve(found.of.size());
  for (const auto& [speed, elasticity, step] : found.of) {
    worth.push_back({std::string(key_of(speed.kind)), {}, elasticity, step});
    if (!speed.device.empty()) worth.back().device = speed.device;
  }
  return worth;
}

Result<Outcome> simulated(const Setup& setup, const study::LoadedStudy& study) {
  Outcome outcome = named(study);
  const sim::SimulateOptions options{.critical_path = false, .max_memory = setup.max_memory};
  auto run = study::run_study(study, options);
  if (!run) {
    Error error = run.error();
    outcome.refused_here = contains(error.message, kOfMaxMemory);
    replace_all(error.message, std::string(kOfMaxMemory), " that a point may take here");
    replace_all(error.message, "raise --max-memory", "have fewer points at once (--threads)");
    return outcome_of(std::move(error), std::move(outcome));
  }
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
                     .unmeasured = study::unmeasured_in(prediction),
                     .samples = prediction.samples,
                     .tokens = prediction.tokens,
                     .mfu = prediction.mfu,
                     .tflops_per_device = prediction.model_tflops_per_device,
                     .devices = prediction.devices,
                     .idle = prediction.idle,
                     .peak = peak,
                     .capacity = room,
                     .tight = study::memory_margin_of(study).is_tight(prediction),
                     .usd = prediction.expense.usd(),
                     .energy = prediction.expense.energy,
                     .carbon = prediction.expense.carbon,
                     .without_host_power = prediction.expense.without_host_power,
                     .without_price = prediction.expense.without_rent,
                     .without_power = prediction.expense.without_power,
                     .training_steps = prediction.training
                                           ? std::optional(prediction.training->steps)
                                           : std::nullopt,
                     .terms = terms_of(prediction.breakdown),
                     .worth = {}};
  if (setup.sweep.sweep.sensitivities) {
    auto worth = worth_of(study, *run, options);
    if (!worth) return outcome_of(worth.error(), named(study));
    outcome.figures->worth = *std::move(worth);
  }
  return outcome;
}

Outcome nothing_fits(const search::SearchResult& result, Outcome outcome) {
  outcome.status = PointStatus::kInfeasible;
  if (result.nearest) {
    const search::Estimate& needs = result.nearest->estimate;
    outcome.strategy = search::in_words(result.nearest->strategy);
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
  search::SearchSpace space = *wanted.space;
  if (!space.offload) space.offload = false;  // a point does not say that it needs host memory
  const auto result = search::run_search(study, {.space = std::move(space),
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
  FORESHARD_ASSIGN(outcome, simulated(setup, *best));
  for (const yaml::Override& each : found) outcome.settings.emplace_back(each.path, each.value);
  return outcome;
}

}  // namespace

Result<Point> load_point(const Setup& setup, std::int64_t index) {
  auto study = study::load_study(
      files_of(setup.sweep),
      {.catalogue = setup.catalogue, .overrides = overrides_of(setup.sweep, index)});
  if (study) {
    std::string key = digest_of(setup, index, study->inputs, "");
    return Point{.key = std::move(key), .state = *std::move(study)};
  }
  if (study.error().code == Error::Code::kIo) return study.error();
  Outcome outcome;
  outcome.why = shown(setup, index, study.error().message);
  std::string key = digest_of(setup, index, {}, outcome.why);
  return Point{.key = std::move(key), .state = std::move(outcome)};
}

Result<Outcome> outcome_at(const Setup& setup, std::int64_t index, const Point& point) {
  if (const auto* outcome = std::get_if<Outcome>(&point.state)) return *outcome;
  FORESHARD_ASSIGN(Outcome outcome, setup.sweep.sweep.search
                                        ? searched(setup, index, study_of(point))
                                        : simulated(setup, study_of(point)));
  outcome.why = shown(setup, index, std::move(outcome.why));
  return outcome;
}

Result<std::string> common_work(const Setup& setup) {
  FORESHARD_ASSIGN(const Point first, load_point(setup, 0));
  return sha256(setup.version + '\n' + text_of(question_of(setup.sweep)) + '\n' + first.key);
}

}  // namespace foreshard::sweep
