#include "evidence/training.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/yaml/describe.h"
#include "evidence/conversion.h"
#include "evidence/parts.h"
#include "evidence/setting.h"

#include "sim/study/run.h"
#include "validate/tables/table.h"

namespace foreshard::accuracy {
namespace {

void fail(Outcome& outcome, const Error& error) {
  outcome.status =
      error.code == Error::Code::kInfeasible ? RowStatus::kInfeasible : RowStatus::kUnsupported;
  outcome.reason = error.message;
}

void set_time(Outcome& outcome, const sim::Prediction& prediction) {
  outcome.breakdown = prediction.breakdown;
  outcome.predicted = prediction.step.in_base();
  outcome.low = prediction.low.in_base();
  outcome.high = prediction.high.in_base();
  outcome.framework = prediction.interval_source.framework;
  outcome.widened_low = prediction.interval_source.widened_low;
  outcome.widened_high = prediction.interval_source.widened_high;
}

// The measured value in seconds or bytes, by the row's metric and unit.
Result<double> measured_by(const TrainingRow& row, const Setting& setting) {
  const bool is_memory = row.metric == "peak_memory";
  const std::string_view unit = is_memory ? "GiB" : "ms";
  if (is_memory || part_named(row.metric)) {
    if (row.unit != unit)
      return Error{Error::Code::kUnsupported,
                   fmt::format("unit '{}' of metric '{}' is not known", row.unit, row.metric)};
    return is_memory ? (row.value * 1_GiB).in_base() : (row.value * 1_ms).in_base();
  }
  TrainingRow known = row;
  known.gbs = setting.strategy.global_batch;
  FORESHARD_ASSIGN(const Seconds step,
                   measured_step(known, setting.model, setting.strategy.devices()));
  return step.in_base();
}

// Why the strategy cannot run on the devices or with the model, in one line.
Status fault_in(const Setting& setting, std::int64_t devices) {
  const Strategy& strategy = setting.strategy;
  const auto unsupported = [](std::string why) {
    return Error{Error::Code::kUnsupported, std::move(why)};
  };
  if (strategy.devices() != devices)
    return unsupported(
        fmt::format("{} ranks were measured on {} devices", strategy.devices(), devices));
  if (const auto faults = faults_in(strategy, setting.model, devices); !faults.empty())
    return unsupported(faults.front().message);
  return {};
}

// The cause of an error alone: its first line, without the place in front of "error: ". The last
// line, which is left out, says what to do about it.
Error first_line(Error error) {
  error.message.resize(std::min(error.message.find('\n'), error.message.size()));
  constexpr std::string_view kError = "error: ";
  if (const auto at = error.message.find(kError); at != std::string::npos)
    error.message.erase(0, at + kError.size());
  if (error.code != Error::Code::kInfeasible) error.code = Error::Code::kUnsupported;
  return error;
}

void set_memory(Outcome& outcome, const TrainingRow& row, const sim::Prediction& prediction,
                const study::ParameterErrors& errors) {
  const auto first = std::ranges::find(prediction.classes, 0, &sim::DeviceClass::representative);
  const auto& fullest = prediction.classes[static_cast<std::size_t>(prediction.worst_memory)];
  const auto& told = contains(row.notes, "of the logging rank") ? *first : fullest;
  outcome.breakdown = prediction.breakdown;
  outcome.predicted = told.memory.peak.in_base();
  set_range(outcome, errors.memory);
}

// The prediction of the row's study, which runs as `simulate` runs it. Sets the outcome's strategy.
Result<sim::Prediction> predicted(const TrainingRow& row, const Context& context,
                                  Outcome& outcome) {
  FORESHARD_ASSIGN(auto study, study_of(row.id, outcome.study, context));
  FORESHARD_ASSIGN(auto run,
                   study::run_study(study, {.critical_path = false, .every_class = false}));
  outcome.strategy = study.strategy;
  return std::move(run.prediction);
}

}  // namespace

Result<std::string> study_text(const TrainingRow& row, const Setting& setting,
                               yaml::Loader& loader) {
  FORESHARD_ASSIGN(auto cluster, cluster_for(setting.cluster, loader));
  study::Study study;
  study.description = fmt::format("{} ({})", row.id, row.source);
  study.cluster.value = std::move(cluster);
  study.model = yaml::Ref<Model>{setting.model, setting.catalogue_model};
  study.strategy.value = setting.strategy;
  study.open = setting.open;
  study.assumed = setting.assumed;
  return yaml::brief(study, loader);
}

Result<std::string> study_text(const TrainingRow& row, const RowFormat& format,
                               const std::vector<std::filesystem::path>& catalogue) {
  if (!row.fault.empty()) return Error{Error::Code::kUnsupported, row.fault};
  yaml::Loader loader({.catalogue = catalogue});
  FORESHARD_ASSIGN(const auto setting, setting_of(row, format, loader));
  return study_text(row, setting, loader);
}

Result<study::LoadedStudy> study_of(const std::string& name, const std::string& text,
                                    const Context& context, bool sizes_matter) {
  auto study = study::load_study({.text = yaml::Input{name, text},
                                  .parameters = &context.communication,
                                  .sizes_matter = sizes_matter},
                                 {.catalogue = context.catalogue});
  if (!study) return first_line(study.error());
  return study;
}

Outcome evaluate(const TrainingRow& row, const RowFormat& format, const Context& context) {
  Outcome outcome;
  outcome.id = row.id;
  outcome.family = row.source;
  if (row.metric == "peak_memory") outcome.quantity = Quantity::kMemory;
  if (!row.fault.empty()) return fail(outcome, {Error::Code::kUnsupported, row.fault}), outcome;
  yaml::Loader loader({.catalogue = context.catalogue});
  auto setting = setting_of(row, format, loader);
  if (!setting) return fail(outcome, setting.error()), outcome;
  outcome.assumed = setting->assumed;
  const auto measured = measured_by(row, *setting);
  if (!measured) return fail(outcome, measured.error()), outcome;
  outcome.measured = *measured;
  if (const auto part = part_named(row.metric)) {
    auto prediction = predict_part(row, *part, *setting, context);
    if (!prediction) return fail(outcome, prediction.error()), outcome;
    return set_time(outcome, *prediction), outcome;
  }
  if (const Status fault = fault_in(*setting, setting->cluster.gpus); !fault.ok())
    return fail(outcome, fault.error()), outcome;
  auto text = study_text(row, *setting, loader);
  if (!text) return fail(outcome, first_line(text.error())), outcome;
  outcome.study = *std::move(text);
  const auto prediction = predicted(row, context, outcome);
  if (!prediction) return fail(outcome, prediction.error()), outcome;
  if (!prediction->fits) {
    const auto& fullest = prediction->classes[static_cast<std::size_t>(prediction->worst_memory)];
    outcome.reason =
        fmt::format("predicted not to fit: {:.1f} of {:.1f} GiB", fullest.memory.peak / 1_GiB,
                    (prediction->memory_capacity - prediction->memory_reserve) / 1_GiB);
  }
  if (outcome.quantity == Quantity::kMemory) {
    set_memory(outcome, row, *prediction, context.errors);
  } else {
    set_time(outcome, *prediction);
  }
  return outcome;
}

Result<Jobs> training_jobs(const Table& table, const std::shared_ptr<const RowFormat>& format,
                           const Context& context) {
  FORESHARD_ASSIGN(auto rows, read_training(table.cells, *format, table.path.string()));
  Jobs result{.jobs = {}, .outcomes = rows.size()};
  for (std::size_t i = 0; i < rows.size(); ++i)
    result.jobs.push_back({{i}, [row = rows[i], format, &context] {
                             return std::vector{evaluate(row, *format, context)};
                           }});
  return result;
}

}  // namespace foreshard::accuracy
