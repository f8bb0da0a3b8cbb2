#include "validate/accuracy/training.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <numeric>
#include <utility>
#include <vector>

#include "base/text.h"

#include "sim/simulate/simulate.h"
#include "sim/study/alternatives.h"
#include "sim/study/run.h"
#include "strategies/parallelism/reserve.h"
#include "strategies/program/lower/lower.h"
#include "topology/clock_spread.h"
#include "topology/cluster_config.h"
#include "validate/accuracy/conversion.h"
#include "validate/accuracy/parts.h"
#include "validate/accuracy/setting.h"
#include "validate/accuracy/table.h"

namespace foreshard::accuracy {
namespace {

struct Trial {
  Strategy strategy;
  program::Program program;
  Bytes excess;  ///< Of the fullest role over its device's memory; <= 0 if it fits.
};

struct Predicted {
  Strategy strategy;
  sim::Prediction prediction;
};

class Row {
 public:
  Row(const Setting& setting, const ClusterView& cluster, const comm::Parameters& communication,
      const study::ParameterErrors& errors)
      : setting_(setting), cluster_(cluster), communication_(communication), errors_(errors) {}

  // The fastest of the choices that fit; where none does, the one with the least excess. A choice
  // that cannot be run is none.
  Result<Predicted> predict() const {
    std::optional<Predicted> best;
    std::optional<Trial> closest;
    Status error;
    const auto choices = choices_of(setting_);
    for (const auto& ways : choices) {
      for (const Strategy& strategy : ways) {
        auto trial = lowered(strategy);
        if (!trial) {
          if (error.ok()) error = trial.error();
          break;
        }
        if (trial->excess > 0_B && !(choices.size() == 1 && ways.size() == 1)) {
          if (!closest || trial->excess < closest->excess) closest = *std::move(trial);
          continue;
        }
        auto prediction = simulated(*trial);
        if (!prediction) {
          if (error.ok()) error = prediction.error();
          break;
        }
        if (!best || prediction->prediction.step < best->prediction.step)
          best = *std::move(prediction);
        break;
      }
    }
    if (best) return *std::move(best);
    if (closest) return simulated(*closest);
    FORESHARD_TRY(error);
    return Error{Error::Code::kUnsupported,
                 fmt::format("{} sequences do not divide into {} equal parts",
                             setting_.strategy.global_batch, setting_.strategy.data_parallel)};
  }

 private:
  Result<Trial> lowered(const Strategy& strategy) const {
    const auto devices = static_cast<std::int64_t>(cluster_.devices().size());
    if (strategy.devices() != devices)
      return Error{Error::Code::kUnsupported, fmt::format("{} ranks were measured on {} devices",
                                                          strategy.devices(), devices)};
    const auto faults = faults_in(strategy, setting_.model, devices);
    if (!faults.empty()) return Error{Error::Code::kUnsupported, faults.front().message};
    auto lowered = lower::lower(setting_.model, strategy, {});
    if (!lowered) return Error{Error::Code::kUnsupported, lowered.error().message};
    auto program = study::with_launch_times(*std::move(lowered), cluster_);
    const Bytes usable = cluster_.device_types()[0].memory.value - reserve_of(strategy);
    Bytes excess = -usable;
    for (const program::Role& role : program.roles)
      excess = std::max(excess, study::peak_in_issue_order(program, role) - usable);
    return Trial{strategy, std::move(program), excess};
  }

  Result<Predicted> simulated(const Trial& trial) const {
    auto prediction = sim::simulate(
        cluster_, trial.program, communication_,
        {.critical_path = false, .every_class = false, .reserve = reserve_of(trial.strategy)});
    if (prediction) {
      sim::Prediction known = *std::move(prediction);
      study::set_interval(known, *setting_.strategy.framework, errors_);
      return Predicted{trial.strategy, std::move(known)};
    }
    return prediction.error();
  }

  const Setting& setting_;
  const ClusterView& cluster_;
  const comm::Parameters& communication_;
  const study::ParameterErrors& errors_;
};

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

}  // namespace

Outcome evaluate(const TrainingRow& row, const comm::Parameters& communication,
                 const study::ParameterErrors& errors,
                 const std::vector<std::filesystem::path>& catalogue) {
  Outcome outcome;
  outcome.id = row.id;
  outcome.family = row.source;
  if (!row.fault.empty()) return fail(outcome, {Error::Code::kUnsupported, row.fault}), outcome;
  yaml::Loader loader({.catalogue = catalogue});
  const bool memory = row.metric == "peak_memory";
  const auto part = part_named(row.metric);
  if (memory) outcome.quantity = Quantity::kMemory;

  auto setting = setting_of(row, loader);
  if (!setting) return fail(outcome, setting.error()), outcome;
  outcome.assumed = setting->assumed;
  if (memory && row.unit != "GiB")
    return fail(outcome, {Error::Code::kUnsupported,
                          fmt::format("unit '{}' of metric 'peak_memory' is not known", row.unit)}),
           outcome;
  if (memory) {
    outcome.measured = (row.value * 1_GiB).in_base();
  } else if (part) {
    if (row.unit != "ms")
      return fail(outcome,
                  {Error::Code::kUnsupported,
                   fmt::format("unit '{}' of metric '{}' is not known", row.unit, row.metric)}),
             outcome;
    outcome.measured = (row.value * 1_ms).in_base();
  } else {
    TrainingRow known = row;
    known.gbs = setting->strategy.global_batch;
    const auto measured = measured_step(known, setting->model, setting->strategy.devices());
    if (!measured) return fail(outcome, measured.error()), outcome;
    outcome.measured = measured->in_base();
  }

  auto config = cluster_for(setting->cluster, loader);
  if (!config) return fail(outcome, config.error()), outcome;
  std::vector<std::int32_t> used(
      static_cast<std::size_t>(std::min(setting->strategy.devices(), config->device_count())));
  std::iota(used.begin(), used.end(), 0);
  auto cluster = build_cluster(!part               ? at_clocks_of_slowest(*std::move(config), used)
                               : is_short_run(row) ? at_full_clocks(*std::move(config))
                                                   : *std::move(config));
  if (!cluster) return fail(outcome, cluster.error()), outcome;
  if (part) {
    auto prediction = predict_part(row, *part, *setting, *cluster, communication);
    if (!prediction) return fail(outcome, prediction.error()), outcome;
    sim::Prediction known = *std::move(prediction);
    study::set_interval(known, *setting->strategy.framework, errors);
    return set_time(outcome, known), outcome;
  }
  auto predicted = Row(*setting, *cluster, communication, errors).predict();
  if (!predicted) return fail(outcome, predicted.error()), outcome;
  const sim::Prediction* const prediction = &predicted->prediction;

  outcome.setting = *std::move(setting);
  outcome.setting->strategy = predicted->strategy;
  const auto& fullest = prediction->classes[static_cast<std::size_t>(prediction->worst_memory)];
  if (!prediction->fits)
    outcome.reason =
        fmt::format("predicted not to fit: {:.1f} of {:.1f} GiB", fullest.memory.peak / 1_GiB,
                    (prediction->memory_capacity - prediction->memory_reserve) / 1_GiB);
  if (memory) {
    const auto first = std::ranges::find(prediction->classes, 0, &sim::DeviceClass::representative);
    const auto& told = contains(row.notes, "of the logging rank") ? *first : fullest;
    outcome.breakdown = prediction->breakdown;
    outcome.predicted = told.memory.peak.in_base();
    set_range(outcome, errors.memory);
    return outcome;
  }
  set_time(outcome, *prediction);
  return outcome;
}

Result<Jobs> training_jobs(const Table& table, const Context& context) {
  FORESHARD_ASSIGN(auto rows, read_training(table.cells, table.path.string()));
  Jobs result{.jobs = {}, .outcomes = rows.size()};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    result.jobs.push_back({{i}, [row = rows[i], &context] {
                             return std::vector{evaluate(row, context.communication, context.errors,
                                                         context.catalogue)};
                           }});
  }
  return result;
}

}  // namespace foreshard::accuracy
