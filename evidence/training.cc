#include "evidence/training.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "base/yaml/describe.h"
#include "evidence/setting.h"
#include "evidence/words.h"

#include "sim/study/run.h"
#include "strategies/program/lower/block.h"
#include "strategies/schedule/schedule.h"
#include "validate/tables/table.h"

namespace foreshard::accuracy {
namespace {

void fail(Outcome& outcome, const Error& error) {
  outcome.status =
      error.code == Error::Code::kInfeasible ? RowStatus::kInfeasible : RowStatus::kUnsupported;
  outcome.reason = error.message;
}

// The measured value in seconds or bytes, by the row's metric and unit.
Result<double> measured_by(const TrainingRow& row, const Setting& setting) {
  const bool is_memory = row.metric == "peak_memory";
  const std::string_view unit = is_memory ? "GiB" : "ms";
  if (is_memory || part_named(row.metric)) {
    if (row.unit != unit)
      return Error{Error::Code::kUnsupported,
                   fmt::format("unit '{}' of metric '{}' is not known", row.unit, row.metric)};
    // LitGPT prints billions of bytes (extensions/thunder/pretrain.py).
    const Bytes unit_of_memory = contains(row.notes, "GB as printed") ? 1_GB : 1_GiB;
    return is_memory ? (row.value * unit_of_memory).in_base() : (row.value * 1_ms).in_base();
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
  const bool is_of_device = contains(row.notes, " in use");
  const Bytes beside = is_of_device ? prediction.memory_reserve : 0_B;
  outcome.predicted = (told.memory.peak + beside).in_base();
  set_range(outcome, errors.memory);
}

// The prediction of the row's study, which runs as `simulate` runs it. Sets the outcome's strategy.
Result<sim::Prediction> predicted(const TrainingRow& row, const Context& context,
                                  Outcome& outcome) {
  FORESHARD_ASSIGN(auto study, study_of(row.id, outcome.study, context));
  FORESHARD_ASSIGN(auto run,
                   study::run_study(study, {.critical_path = false, .every_class = false}));
  outcome.strategy = study.strategy;
  outcome.kind = study::kind_of(study);
  return std::move(run.prediction);
}

}  // namespace

void set_time(Outcome& outcome, const sim::Prediction& prediction) {
  outcome.breakdown = prediction.breakdown;
  outcome.predicted = prediction.step.in_base();
  outcome.low = prediction.low.in_base();
  outcome.high = prediction.high.in_base();
  outcome.widened_low = prediction.interval_source.widened_low;
  outcome.widened_high = prediction.interval_source.widened_high;
}

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

namespace {

constexpr std::array kConventions{
    Convention{"hardware_TFLOPS_per_GPU", "", FlopsConvention::kHardware,
               "Narayanan et al., SC 2021, equation 3: full recomputation, attention whole"},
    Convention{"model_TFLOPS_per_GPU", "stas00", FlopsConvention::kCausalHalf,
               "stas00/ml-engineering, when-to-upgrade-gpus: 6 N tokens + 6 s^2 h l"},
    Convention{"model_TFLOPS_per_GPU", "Megatron-Bridge", FlopsConvention::kCausalHalf,
               "NVIDIA-NeMo/Megatron-Bridge: training/utils/flop_utils.py"},
    Convention{"model_TFLOPS_per_GPU", "ModelZoo", FlopsConvention::kCausalHalf,
               "yanring/Megatron-MoE-ModelZoo, as Megatron-Bridge"},
    Convention{"model_TFLOPS_per_GPU", "", FlopsConvention::kModel,
               "Korthikanti et al., MLSys 2023, appendix A: no recomputation, attention whole"},
    Convention{"MFU", "", FlopsConvention::kModel,
               "Korthikanti et al., MLSys 2023, appendix A; MegaScale (NSDI 2024) likewise"},
};

// The first number in `text`: "percent of 989.5 TFLOP/s" -> 989.5.
std::optional<double> number_in(std::string_view text) {
  const auto begin = text.find_first_of("0123456789");
  if (begin == std::string_view::npos) return std::nullopt;
  double value = 0;
  const auto [end, status] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  if (status != std::errc()) return std::nullopt;
  return value;
}

Error unknown_unit(const TrainingRow& row) {
  return {Error::Code::kUnsupported,
          fmt::format("unit '{}' of metric '{}' is not known", row.unit, row.metric)};
}

}  // namespace

const Convention* convention_of(const TrainingRow& row) {
  for (const Convention& convention : kConventions)
    if (row.metric == convention.metric && row.source.find(convention.source) != std::string::npos)
      return &convention;
  return nullptr;
}

Flops step_flops(const Model& model, double samples, FlopsConvention convention) {
  const Flops all = model_flops(model, samples);
  const double tokens = samples * static_cast<double>(model.sequence);
  switch (convention) {
    case FlopsConvention::kModel:
      return all;
    case FlopsConvention::kHardware: {
      const Flops logits = 6 * tokens * static_cast<double>(model.hidden) *
                           static_cast<double>(model.vocabulary) * 1_FLOP;
      return all + (all - logits) / 3;
    }
    case FlopsConvention::kCausalHalf: {
      const Flops scores = 12 * tokens * static_cast<double>(model.sequence) *
                           static_cast<double>(model.heads * model.head_size()) *
                           static_cast<double>(model.layers) * 1_FLOP;
      return all - scores / 2;
    }
  }
  FORESHARD_CHECK(false);
}

Result<Seconds> measured_step(const TrainingRow& row, const Model& model, std::int64_t gpus) {
  const auto samples = static_cast<double>(*row.gbs);
  const double tokens = samples * static_cast<double>(model.sequence);
  const auto devices = static_cast<double>(gpus);
  const bool per_gpu = row.metric.ends_with("/GPU");
  if (row.metric == "step_time") {
    if (row.unit == "s") return row.value * 1_s;
    if (row.unit == "ms") return row.value * 1_ms;
    return unknown_unit(row);
  }
  if (row.metric.starts_with("tokens/s"))
    return tokens / (row.value * (per_gpu ? devices : 1)) * 1_s;
  if (row.metric.starts_with("samples/s"))
    return samples / (row.value * (per_gpu ? devices : 1)) * 1_s;
  if (const Convention* convention = convention_of(row)) {
    const Flops flops = step_flops(model, samples, convention->flops);
    if (row.metric != "MFU") {
      if (row.unit != "TFLOP/s/GPU") return unknown_unit(row);
      return flops / (row.value * devices * 1_TFLOP_s);
    }
    const auto peak = number_in(row.unit);
    if (!row.unit.starts_with("percent of") || !peak) return unknown_unit(row);
    return flops / (row.value / 100 * *peak * devices * 1_TFLOP_s);
  }
  return Error{Error::Code::kUnsupported,
               fmt::format("metric '{}' is not of a whole training step", row.metric)};
}

std::optional<Seconds> noted_step(const TrainingRow& row) {
  constexpr std::string_view kKey = "derived step_time=";
  const auto at = row.notes.find(kKey);
  if (at == std::string::npos) return std::nullopt;
  const auto value = number_in(std::string_view(row.notes).substr(at + kKey.size()));
  if (!value) return std::nullopt;
  return *value * 1_s;
}

namespace {

struct NamedPart {
  std::string_view metric;
  PartOfStep part;
};
constexpr std::array kMeasuredParts{
    NamedPart{"layer_forward", PartOfStep::kForward},
    NamedPart{"layer_backward", PartOfStep::kBackward},
    NamedPart{"stage_T_F", PartOfStep::kForward},
    NamedPart{"stage_T_B", PartOfStep::kInputGradients},
    NamedPart{"stage_T_W", PartOfStep::kWeightGradients},
};

// Whether the part is half of a split backward pass.
bool splits(PartOfStep part) {
  return part == PartOfStep::kInputGradients || part == PartOfStep::kWeightGradients;
}

// Whether the task belongs to the layer around the expert branch (norm, residual), by its name.
bool is_around_branch(const program::Task& task) {
  constexpr std::array<std::string_view, 5> kAround{"mlp_norm", "mlp_residual", "d.mlp_norm",
                                                    "d.mlp_residual", "sum.d.layer_in"};
  return std::ranges::find(kAround, task.name) != kAround.end();
}

// The block without the tasks around the expert branch. A task that waited for a removed task waits
// for that task's own predecessors instead.
program::Block without_surroundings(const program::Block& block) {
  program::Block left{.name = block.name};
  // task of `block` -> the tasks of `left` that stand for it: itself, or a removed task's
  // predecessors
  std::vector<std::vector<std::int32_t>> stands_for;
  for (const program::Task& task : block.tasks) {
    std::vector<std::int32_t> after;
    for (const std::int32_t earlier : task.after) {
      const auto& now = stands_for[static_cast<std::size_t>(earlier)];
      after.insert(after.end(), now.begin(), now.end());
    }
    std::ranges::sort(after);
    after.erase(std::unique(after.begin(), after.end()), after.end());
    if (is_around_branch(task)) {
      stands_for.push_back(std::move(after));
      continue;
    }
    stands_for.push_back({static_cast<std::int32_t>(left.tasks.size())});
    left.tasks.push_back(task);
    left.tasks.back().after = std::move(after);
  }
  return left;
}

// The pass that runs before this one in steady state.
PartOfStep before_it(PartOfStep part) {
  switch (part) {
    case PartOfStep::kForward:
      return PartOfStep::kBackward;
    case PartOfStep::kWeightGradients:
      return PartOfStep::kInputGradients;
    case PartOfStep::kBackward:
    case PartOfStep::kInputGradients:
      return PartOfStep::kForward;
  }
  FORESHARD_CHECK(false);
}

const lower::Pieces* pieces_of(const lower::LoweredBlock& layer, PartOfStep part) {
  if (part == PartOfStep::kForward) return &layer.forward;
  if (part == PartOfStep::kBackward) return &layer.backward;
  if (!layer.split) return nullptr;
  return part == PartOfStep::kInputGradients ? &layer.split->input : &layer.split->weight;
}

}  // namespace

std::optional<PartOfStep> part_named(std::string_view metric) {
  const auto known = std::ranges::find(kMeasuredParts, metric, &NamedPart::metric);
  return known == kMeasuredParts.end() ? std::nullopt : std::optional(known->part);
}

bool is_of_experts_alone(const TrainingRow& row) {
  return contains(lower_case(row.notes), "one moe layer only");
}

bool is_short_run(const TrainingRow& row) {
  return contains(row.notes, "measured iterations");
}

ClusterConfig at_full_clocks(ClusterConfig config) {
  DeviceType& device = config.node->value.device.value;
  own_products(device);
  DeviceEfficiency& efficiency = device.efficiency.value;
  efficiency.gemm.sustained = 1;
  efficiency.gemm.sustained_of.clear();
  efficiency.attention.sustained = 1;
  for (auto& [implementation, attention] : efficiency.attention_of) attention.sustained = 1;
  return config;
}

Result<sim::Prediction> predict_part(const TrainingRow& row, PartOfStep part,
                                     const Setting& setting, const Context& context) {
  Setting closed = setting;
  closed.open.clear();  // one layer cannot settle open settings
  yaml::Loader loader({.catalogue = context.catalogue});
  FORESHARD_ASSIGN(const auto text, study_text(row, closed, loader));
  FORESHARD_ASSIGN(auto study, study_of(row.id, text, context));
  if (is_short_run(row)) study.cluster = at_full_clocks(std::move(study.cluster));
  FORESHARD_ASSIGN(const auto cluster, build_cluster(study.cluster));
  Strategy strategy = study.strategy;
  if (splits(part)) {  // the source's own schedules split the backward pass
    strategy.schedule = "zb-h1";
    strategy.virtual_stages = 1;
  }
  const auto devices = static_cast<std::int64_t>(cluster.devices().size());
  const auto faults = faults_in(strategy, study.model, devices);
  if (!faults.empty()) return Error{Error::Code::kUnsupported, faults.front().message};
  auto lowered = lower::lower_blocks(study.model, strategy);
  if (!lowered) return Error{Error::Code::kUnsupported, lowered.error().message};
  const lower::LoweredBlock& layer = lowered->layers.front();
  const auto layers = number_after(row.notes, "middle pipeline stage (").value_or(1);
  const auto run = [&](const std::vector<PartOfStep>& parts) -> Result<sim::Prediction> {
    program::Program program{.name = row.metric,
                             .mesh = lowered->mesh,
                             .streams = lower::streams(),
                             .launch_time = strategy.host_time()};
    program::Role role{.name = "part",
                       .ranks = std::vector<std::int32_t>(static_cast<std::size_t>(devices))};
    std::iota(role.ranks.begin(), role.ranks.end(), 0);
    for (const PartOfStep one : parts) {
      const lower::Pieces* pieces = pieces_of(layer, one);
      if (pieces == nullptr || !lower::is_one_block(*pieces))
        return Error{Error::Code::kUnsupported,
                     fmt::format("metric '{}' is not of one block of tasks", row.metric)};
      const program::Block& block = lower::only_block(*pieces);
      role.calls.push_back({.block = program::BlockId{std::ssize(program.blocks)},
                            .repeat = static_cast<std::int32_t>(layers)});
      program.blocks.push_back(is_of_experts_alone(row) ? without_surroundings(block) : block);
    }
    program.roles = {std::move(role)};
    return study::simulated(study, cluster, study::with_launch_times(std::move(program), cluster),
                            {.critical_path = false});
  };
  FORESHARD_ASSIGN(const auto before, run({before_it(part)}));
  FORESHARD_ASSIGN(auto both, run({before_it(part), part}));
  both.step -= before.step;
  study::set_evidence(both, study);
  return both;
}

}  // namespace foreshard::accuracy
