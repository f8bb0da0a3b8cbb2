// Gathers from a study's run what reports show (report.h). predict.cc calls report_of; the writers
// only lay it out.
#include "sim/report/report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "base/digest/sha256.h"
#include "base/text.h"

#include "sim/report/numbers.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard::report {
namespace {

std::string words_of(const Model& model) {
  std::string text = fmt::format("{}: {} {}, hidden {}", model.name, grouped(model.layers),
                                 plural(model.layers, "layer"), grouped(model.hidden));
  if (model.heads > 0)
    text += fmt::format(", {} {}", grouped(model.heads), plural(model.heads, "head"));
  if (model.kv() != model.heads) text += fmt::format(" ({} for keys)", grouped(model.kv()));
  if (model.mamba)
    text += fmt::format(", {} Mamba {} of state {}", grouped(model.mamba->heads),
                        plural(model.mamba->heads, "head"), grouped(model.mamba->state));
  if (model.multi_token_prediction > 0)
    text += fmt::format(", {} more {} predicted", model.multi_token_prediction,
                        plural(model.multi_token_prediction, "token"));
  if (model.encoder)
    text += fmt::format(", the first {} an encoder of {} tokens", grouped(model.encoder->layers),
                        grouped(model.encoder->sequence));
  text += fmt::format(", sequence {}", grouped(model.sequence));
  if (model.has_packed_samples())
    text += fmt::format(" packed of samples of {} tokens on average",
                        grouped(std::llround(model.samples->mean_length())));
  else if (model.samples)
    text += fmt::format(" of which samples fill {}",
                        percent(model.samples->useful_share(model.sequence)));
  text += fmt::format(", {} parameters", scaled(static_cast<double>(parameter_count(model))));
  const std::string trained = scaled(static_cast<double>(trained_parameter_count(model)));
  if (model.adapters)
    text += fmt::format(", of which adapters of rank {} train {}{}", model.adapters->rank, trained,
                        model.adapters->base == AdapterBase::kNf4 ? ", the others in nf4" : "");
  if (model.frozen) text += fmt::format(", of which {} are trained", trained);
  return text;
}

std::string words_of(const ClusterConfig& cluster) {
  std::string text = cluster.name + ":";
  const auto groups = cluster.node_groups();
  for (std::size_t i = 0; i < groups.size(); ++i)
    text += fmt::format("{} {} x {} {}", i == 0 ? "" : ",", grouped(groups[i].nodes),
                        groups[i].node->gpus, groups[i].node->device->name);
  return text + fmt::format(", {} {}, {}", grouped(cluster.device_count()),
                            plural(cluster.device_count(), "device"), cluster.fabric.kind);
}

std::string words_of(const Strategy& strategy) {
  std::string text = fmt::format("tensor {} x pipeline {} x data {}", strategy.tensor_parallel,
                                 strategy.pipeline_parallel, strategy.data_parallel);
  if (strategy.mode == Mode::kForward) text = "forward only, " + text;
  if (strategy.context_parallel > 1) text += " x context " + words_of_context(strategy);
  if (strategy.expert_parallel > 1)
    text += fmt::format(", experts {}{}", strategy.expert_parallel, words_of_experts(strategy));
  if (strategy.sequence_parallel) text += ", sequence parallel";
  if (strategy.pipeline_parallel > 1) text += ", " + strategy.schedule;
  if (strategy.virtual_stages > 1) text += fmt::format(" x {}", strategy.virtual_stages);
  text += fmt::format(", batch {} in micro-batches of {}", grouped(strategy.global_batch),
                      strategy.micro_batch);
  if (strategy.zero_stage > 0) text += fmt::format(", ZeRO {}", strategy.zero_stage);
  text += fmt::format(", recompute {}, {}", words_of_recomputation(strategy),
                      name_of(strategy.precision));
  if (strategy.quantization != Quantization::kNone)
    text += fmt::format(" with {}{}", yaml::name_of(strategy.quantization),
                        strategy.quantized_parameters ? " parameters" : "");
  if (strategy.unquantized_layers.any())
    text += fmt::format(" but for {} first and {} last layers", strategy.unquantized_layers.first,
                        strategy.unquantized_layers.last);
  return text + words_of_extras(strategy) + ", " + strategy.framework->name;
}

NamedTask words_of(const sim::TaskPlace& place, const sim::Prediction& prediction,
                   const program::Program& program) {
  const auto& one = prediction.classes[static_cast<std::size_t>(place.device_class)];
  const program::Block& block = program.blocks[static_cast<std::size_t>(place.block)];
  return {.who = fmt::format("rank {} ({})", one.representative, one.role),
          .what = block.name + " / " + block.tasks[static_cast<std::size_t>(place.task)].name,
          .layer = place.layer,
          .micro_batch = place.micro_batch};
}

InterruptionReport words_of(const sim::Interruption& what, const sim::Prediction& prediction,
                            const program::Program& program) {
  InterruptionReport report{
      .at = what.at, .failed = {}, .waiting = {}, .unfinished = what.unfinished};
  for (const sim::FailedTask& one : what.failed)
    report.failed.push_back({words_of(one.task, prediction, program), one.start, one.at, one.on});
  const auto same = [](const sim::TaskPlace& a, const sim::TaskPlace& b) {
    return a.device_class == b.device_class && a.block == b.block && a.task == b.task &&
           a.layer == b.layer && a.micro_batch == b.micro_batch;
  };
  for (const sim::WaitingClass& one : what.waiting)
    report.waiting.push_back(
        {.task = words_of(one.task, prediction, program),
         .count = prediction.classes[static_cast<std::size_t>(one.task.device_class)].count,
         .since = one.since,
         .waits_for = words_of(one.waits_for, prediction, program),
         .failed = one.failed,
         .itself = same(one.task, one.waits_for)});
  return report;
}

}  // namespace

Subject subject_of(const study::LoadedStudy& study) {
  return {.name = study.name,
          .description = study.description,
          .model = study.graph ? study::describe(*study.graph) : words_of(study.model),
          .cluster = words_of(study.cluster),
          .strategy = words_of(study.strategy),
          .sample = study.graph                        ? study.graph->sample
                    : study.model.has_packed_samples() ? "sample"
                                                       : "sequence",
          .computed_per_token = study.graph || !study.model.samples
                                    ? 1
                                    : 1 / study.model.samples->useful_share(study.model.sequence)};
}

std::vector<CriticalShare> critical_shares(const sim::Prediction& prediction,
                                           const program::Program& program) {
  std::map<std::string, CriticalShare> shares;
  for (const sim::CriticalTask& task : prediction.critical_path) {
    const program::Block& block = program.blocks[static_cast<std::size_t>(task.block)];
    const std::string what =
        block.name + " / " + block.tasks[static_cast<std::size_t>(task.task)].name;
    CriticalShare& share = shares[what];
    share.what = what;
    share.time += task.finish - task.start;
    ++share.tasks;
  }
  std::vector<CriticalShare> result;
  result.reserve(shares.size());
  for (auto& [what, share] : shares) result.push_back(std::move(share));
  std::ranges::stable_sort(result, [](const auto& a, const auto& b) { return a.time > b.time; });
  return result;
}

bool is_tight(const Report& report) {
  const sim::Prediction& prediction = report.prediction;
  return prediction.fits && !prediction.classes.empty() && report.margin.is_tight(prediction);
}

Report report_of(const study::LoadedStudy& study, study::StudyRun run) {
  Report report{.subject = subject_of(study),
                .prediction = std::move(run.prediction),
                .capacities = {},
                .margin = study::memory_margin_of(study),
                .critical = {},
                .interruption = {},
                .alternatives = {},
                .sensitivities = {},
                .inputs = {},
                .drawn = {},
                .measured = {},
                .wall = {}};
  for (const sim::DeviceClass& one : report.prediction.classes)
    report.capacities.push_back(run.cluster.type_of(one.device).memory.value);
  report.critical = critical_shares(report.prediction, run.program);
  if (report.prediction.interruption)
    report.interruption = words_of(*report.prediction.interruption, report.prediction, run.program);
  if (study.measured) {
    MeasuredShare& share = report.measured.emplace();
    share.rows = std::ssize(study.measured->rows);
    share.unused = study::unused_in(*study.measured, run.program);
    for (const sim::CriticalUse& use : report.prediction.critical_uses)
      if (use.itself) share.time += use.time;
  }
  for (const yaml::Input& input : study.inputs)
    report.inputs.push_back({input.path, sha256(input.bytes)});
  return report;
}

}  // namespace foreshard::report
