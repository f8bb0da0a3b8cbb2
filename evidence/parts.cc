#include "evidence/parts.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "evidence/training.h"
#include "evidence/words.h"

#include "sim/study/run.h"
#include "strategies/program/lower/block.h"
#include "strategies/schedule/schedule.h"

namespace foreshard::accuracy {
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
