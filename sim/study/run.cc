// Runs a loaded study (run.h): cluster, disturbances, Program, simulation, evidence, expense.
// Commands that predict a step call run_study.
#include "sim/study/run.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/grouped.h"
#include "base/quantity.h"
#include "base/result.h"
#include "base/text.h"

#include "sim/simulate/communicators.h"
#include "sim/simulate/cost.h"
#include "sim/simulate/simulate.h"
#include "sim/study/expense.h"
#include "sim/study/study.h"
#include "strategies/graph/annotate.h"
#include "strategies/parallelism/graphs.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/ir/program.h"
#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/graph.h"
#include "strategies/program/lower/lower.h"
#include "topology/clock_spread.h"

namespace foreshard::study {
namespace {

// The disturbances of a study: one step, or many with different seeds.

Result<sim::Prediction> one_run(const LoadedStudy& study, const ClusterView& cluster,
                                const program::Program& program, sim::SimulateOptions options,
                                std::int64_t run) {
  FORESHARD_ASSIGN(
      const auto plan,
      disturbance::plan_of(
          *study.disturbances, cluster, study.used(), run,
          [&](const std::string& key, const std::string& message, const std::string& help) {
            return study.loader.error_at("disturbances." + key, message, help);
          }));
  // A plan that changes only constant speeds needs no disturbed simulation.
  options.disturbances = plan.only_slow() ? nullptr : &plan;
  const auto slow = disturbance::slowed(cluster, plan);
  FORESHARD_ASSIGN(sim::Prediction prediction,
                   simulated(study, slow ? *slow : cluster, program, options));
  prediction.disturbances =
      sim::DisturbanceSummary{.seed = plan.seed, .hits = plan.hits, .steps = {}, .interrupted = 0};
  return prediction;
}

// sim::simulate under the study's disturbances. With several runs, the prediction is the run with
// the median step among those that end (nearest rank), and its summary has the steps of all that
// end. If nothing is random, one run stands for all.
// \pre study.disturbances; `cluster` is cluster_of(study)
// \return kInvalidInput, with a place, if disturbances do not fit the cluster; the errors of
//     sim::simulate.
Result<sim::Prediction> simulate_disturbed(const LoadedStudy& study, const ClusterView& cluster,
                                           const program::Program& program,
                                           const sim::SimulateOptions& options) {
  const std::int64_t runs = disturbance::random(*study.disturbances) ? study.disturbances->runs : 1;
  std::vector<std::pair<Seconds, std::int64_t>> ended;
  std::vector<Seconds> steps;
  for (std::int64_t run = 0; runs > 1 && run < runs; ++run) {
    FORESHARD_ASSIGN(const auto brief, one_run(study, cluster, program,
                                               {.engine = options.engine,
                                                .granularity = options.granularity,
                                                .fold = options.fold,
                                                .coalesce = options.coalesce,
                                                .critical_path = false},
                                               run));
    if (brief.interruption) continue;
    ended.emplace_back(brief.step, run);
    steps.push_back(brief.step);
  }
  std::int64_t shown = 0;
  if (!ended.empty()) {
    std::ranges::sort(ended);
    shown = ended[(ended.size() - 1) / 2].second;
  }
  FORESHARD_ASSIGN(sim::Prediction result, one_run(study, cluster, program, options, shown));
  if (runs == 1 && !result.interruption) steps.push_back(result.step);
  if (runs < study.disturbances->runs)
    result.warnings.push_back(
        {.code = "disturbances",
         .message = "nothing about the disturbances is random: one run stands "
                    "for the " +
                    std::to_string(study.disturbances->runs) + " asked for"});
  for (const disturbance::Hit& hit : result.disturbances->hits) {
    if (hit.at < result.step || result.interruption) continue;
    result.warnings.push_back({.code = "disturbances",
                               .message = hit.kind + " (" + hit.effect + ") from " +
                                          format(hit.at) +
                                          " on comes too late: the step is over "
                                          "after " +
                                          format(result.step)});
  }
  result.disturbances->interrupted = runs - static_cast<std::int64_t>(steps.size());
  result.disturbances->steps = std::move(steps);
  return result;
}

}  // namespace

namespace {

// Compute capability of Blackwell, times ten.
constexpr std::int64_t kScalesBlocksOf32 = 100;

void add_recipes(const Graph& graph, std::set<Quantization>& recipes) {
  const auto& names = yaml_names(static_cast<const Quantization*>(nullptr));
  for (const Operator& op : graph.operators)
    if (op.settings.has("recipe"))
      if (const auto recipe = names.find(op.settings.text("recipe"))) recipes.insert(*recipe);
  for (const Graph& body : graph.bodies) add_recipes(body, recipes);
}

// The quantization recipes of the step's products.
std::set<Quantization> recipes_of(const LoadedStudy& study) {
  std::set<Quantization> recipes{study.strategy.quantization};
  if (study.graph) add_recipes(study.graph->graph, recipes);
  recipes.erase(Quantization::kNone);
  return recipes;
}

// An error for the first recipe that the device cannot follow: products in a type that it does not
// support would be no faster than in 16 bits, and not what is meant.
std::optional<StrategyFault> fault_in(const std::set<Quantization>& recipes,
                                      const DeviceType& device) {
  for (const Quantization recipe : recipes) {
    const std::string wanted(name_of(dtype_of(recipe)));
    if (!device.tensor_peak.contains(wanted))
      return StrategyFault{
          .key = "quantization",
          .message = fmt::format("device '{}' has no {} products, which '{}' needs", device.name,
                                 wanted, yaml::name_of(recipe)),
          .help = fmt::format("set quantization: none, or take a device whose tensor_peak lists {}",
                              wanted)};
    const auto& capability = device.compute_capability;
    const bool scales_few =
        (capability.evidence != yaml::Evidence::kTransferred && *capability >= kScalesBlocksOf32) ||
        generation_of(device) == "CDNA4";
    if (recipe == Quantization::kMxFp8 && !scales_few)
      return StrategyFault{
          .key = "quantization",
          .message = fmt::format(
              "the matrix units of device '{}' do not scale blocks of 32 elements", device.name),
          .help =
              "set quantization: fp8-current, or take a device of compute capability 10.0 or more"};
  }
  return std::nullopt;
}

Status without_products(const LoadedStudy& study, std::span<const std::int32_t> used,
                        const ClusterView& cluster) {
  const std::set<Quantization> recipes = recipes_of(study);
  for (const std::int32_t device : used) {
    const DeviceTypeId type = cluster.devices()[static_cast<std::size_t>(device)].type;
    const auto fault = fault_in(recipes, cluster.device_types()[type.index()]);
    if (!fault) continue;
    if (study.graph)
      return study.loader.error_at("graph", fault->message,
                                   "give its quantize operators and products another recipe, or "
                                   "take another device");
    return study.loader.error_at("strategy.quantization", fault->message, fault->help);
  }
  return {};
}

}  // namespace

Result<ClusterView> cluster_of(const LoadedStudy& study) {
  return cluster_of(study, study.used());
}

Result<ClusterView> cluster_of(const LoadedStudy& study, std::span<const std::int32_t> used) {
  ClusterConfig config = at_clocks_of_slowest(study.cluster, used);
  if (study.disturbances && disturbance::about_links(*study.disturbances))
    config.single_cables = true;
  FORESHARD_ASSIGN(auto cluster, build_cluster(config, study.loader, "cluster"));
  FORESHARD_TRY(without_products(study, used, cluster));
  return cluster;
}

namespace {

// Without a cluster, conversions are planned by their bytes.
Result<lower::LoweredGraph> lowered_graph(const LoadedStudy& study, const ClusterView* cluster,
                                          std::vector<std::string>* remarks) {
  Graph graph = study.graph->graph;
  auto annotated = annotate(graph, mesh_of(study.strategy, study.graph->axes),
                            {.annotations = study.graph->annotations, .batch = study.graph->batch});
  if (!annotated) return study.loader.error_at("graph.annotations", annotated.error().message);
  lower::GraphOptions options{.axes = study.graph->axes,
                              .cuts = study.graph->cuts,
                              .tokens_per_sample = study.graph->tokens_per_sample,
                              .batch = study.graph->batch,
                              .seed = study.graph->seed};
  std::optional<sim::SimulatedCost> cost;
  if (cluster != nullptr) {
    options.cost = &cost.emplace(*cluster, study.communication);
    options.placement = {.cluster = cluster, .device_of_rank = study.pool.devices};
  }
  auto lowered = lower::lower_graph(graph, study.strategy, options);
  if (!lowered) return study.loader.error_at("graph", lowered.error().message);
  if (remarks != nullptr) {
    for (const auto& lines : {study.graph->remarks, *annotated, lowered->remarks})
      remarks->insert(remarks->end(), lines.begin(), lines.end());
  }
  return lowered;
}

Result<program::Program> lowered(const LoadedStudy& study, const ClusterView& cluster,
                                 std::vector<std::string>* remarks) {
  if (!study.graph) return lower::lower(study.model, study.strategy, {});
  FORESHARD_ASSIGN(auto lowered, lowered_graph(study, &cluster, remarks));
  return std::move(lowered.program);
}

}  // namespace

Result<plan::StepPlan> plan_of(const LoadedStudy& study) {
  if (!study.graph) return lower::plan_of(study.model, study.strategy);
  FORESHARD_ASSIGN(auto lowered, lowered_graph(study, nullptr, nullptr));
  return std::move(lowered.plan);
}

program::Program with_launch_times(program::Program program, const ClusterView& cluster) {
  std::vector<Seconds> times;
  for (std::int32_t rank = 0; rank < program.ranks(); ++rank) {
    const Device& device = cluster.devices()[sim::device_of(program, rank).index()];
    times.push_back(cluster.host(device.node).launching(program.launch_time_of(rank)));
  }
  const auto [shortest, longest] = std::ranges::minmax_element(times);
  program.launch_time = *longest;
  program.launch_time_of_rank = *shortest < *longest ? std::move(times) : std::vector<Seconds>{};
  return program;
}

Result<program::Program> program_of(const LoadedStudy& study, const ClusterView& cluster,
                                    std::vector<std::string>* remarks) {
  FORESHARD_ASSIGN(auto program, lowered(study, cluster, remarks));
  auto placed = with_launch_times(study.pool.placed(std::move(program)), cluster);
  FORESHARD_TRY(program::verify(placed));
  return placed;
}

Result<sim::Prediction> simulated(const LoadedStudy& study, const Strategy& strategy,
                                  std::span<const std::int32_t> used, const ClusterView& cluster,
                                  const program::Program& program, sim::SimulateOptions options) {
  options.reserve = reserve_of(strategy);
  options.links = links_of(groups_with(study.cluster, used));
  return sim::simulate(cluster, program, study.communication, options);
}

Result<sim::Prediction> simulated(const LoadedStudy& study, const ClusterView& cluster,
                                  const program::Program& program, sim::SimulateOptions options) {
  return simulated(study, study.strategy, study.used(), cluster, program, std::move(options));
}

void set_expense(sim::Prediction& prediction, const LoadedStudy& study,
                 const ClusterView& cluster) {
  prediction.expense = expense_of(prediction, cluster, study.cluster);
  if (!study.train || prediction.interruption) return;
  const auto length = parse_training_length(*study.train);
  FORESHARD_CHECK(length);
  const bool packed = !study.graph && study.model.has_packed_samples();
  const double per_step = length->tokens ? prediction.tokens
                          : packed && length->unit == "sequences"
                              ? static_cast<double>(study.strategy.global_batch)
                              : prediction.samples;
  prediction.training =
      sim::Training{.length = *study.train, .steps = std::ceil(length->amount / per_step)};
}

namespace {

void warn_of_idle(const LoadedStudy& study, sim::Prediction& prediction) {
  std::string message = fmt::format(
      "{} of {} devices that work stay idle: the strategy has {} ranks", grouped(prediction.idle),
      grouped(prediction.idle + prediction.devices), grouped(prediction.devices));
  const Strategy& strategy = study.strategy;
  const std::int64_t replica = prediction.devices / strategy.data_parallel;
  std::int64_t most = study.pool.size() / replica;
  const auto divides = [&] { return strategy.global_batch % (most * strategy.micro_batch) == 0; };
  while (!study.graph && most > strategy.data_parallel && !divides()) --most;
  if (most > strategy.data_parallel)
    message += fmt::format("; data_parallel: {} would use {}", most, grouped(most * replica));
  prediction.warnings.push_back({.code = "idle", .message = std::move(message)});
}

}  // namespace

// Step times at percentiles of the drawn expert loads: a step grows with the load of its busiest
// rank, so that simulating a few of the loads is enough.
Result<std::optional<sim::ExpertLoadSpread>> routing_of(const LoadedStudy& study,
                                                        const ClusterView& cluster,
                                                        sim::SimulateOptions options) {
  if (!study.strategy.expert_load.zipf || study.graph)
    return std::optional<sim::ExpertLoadSpread>{};
  const std::vector<double> loads =
      drawn_loads(study.strategy.expert_load, study.model, study.strategy.expert_parallel);
  const auto below = [&](double share) {
    return loads[static_cast<std::size_t>(share * static_cast<double>(loads.size() - 1))];
  };
  Strategy strategy = study.strategy;
  strategy.expert_load = {};
  options.critical_path = false;
  options.timeline = false;
  const auto step_at = [&](double load) -> Result<Seconds> {
    strategy.capacity_factor = load;
    FORESHARD_ASSIGN(auto program, lower::lower(study.model, strategy, {}));
    program = with_launch_times(study.pool.placed(std::move(program)), cluster);
    FORESHARD_ASSIGN(const auto prediction, simulated(study, cluster, program, options));
    return prediction.step;
  };
  sim::ExpertLoadSpread routing;
  routing.draws = std::ssize(loads);
  routing.mean_load = study.strategy.expert_slots(study.model);
  routing.high_load = below(0.95);
  FORESHARD_ASSIGN(routing.low, step_at(below(0.05)));
  FORESHARD_ASSIGN(routing.median, step_at(below(0.5)));
  FORESHARD_ASSIGN(routing.high, step_at(below(0.95)));
  return std::optional(routing);
}

void set_evidence(sim::Prediction& prediction, const LoadedStudy& study) {
  set_interval(prediction, kind_of(study), study.measured_steps->groups, study.errors);
  if (study.settled) {
    prediction.high = std::max(prediction.high, study.settled->slowest * prediction.step);
    prediction.warnings.push_back({.code = "open", .message = study.settled->message});
  }
  if (!study.assumed.empty())
    prediction.warnings.push_back(
        {.code = "assumed",
         .message = "not said by the study's source, and assumed: " + join(study.assumed)});
  const auto warn = [&](std::string message) {
    prediction.warnings.push_back({.code = kIntervalWarning, .message = std::move(message)});
  };
  if (study.strategy.mode == Mode::kForward)
    warn("the interval comes from measurements of training steps; no forward passes were measured");
  const std::string model = kind_of(study).model;
  if (std::ranges::none_of(study.measured_steps->groups, [&](const MeasuredStepGroup& group) {
        return group.kind.model == model;
      }))
    warn(fmt::format("no step of such a model ({}) was measured: the interval comes from others",
                     model));
}

Result<StudyRun> run_study(const LoadedStudy& study, const sim::SimulateOptions& options) {
  FORESHARD_ASSIGN(auto cluster, cluster_of(study));
  std::vector<std::string> remarks;
  FORESHARD_ASSIGN(auto program, program_of(study, cluster, &remarks));
  FORESHARD_ASSIGN(auto prediction, study.disturbances
                                        ? simulate_disturbed(study, cluster, program, options)
                                        : simulated(study, cluster, program, options));
  StudyRun run{std::move(cluster), std::move(program), std::move(prediction)};
  if (!study.disturbances) {
    FORESHARD_ASSIGN(run.prediction.routing, routing_of(study, run.cluster, options));
  }
  if (run.prediction.idle > 0) warn_of_idle(study, run.prediction);
  set_evidence(run.prediction, study);
  set_expense(run.prediction, study, run.cluster);
  for (const std::string& remark : study.remarks)
    run.prediction.warnings.push_back({.code = "model", .message = remark});
  for (std::string& remark : remarks)
    run.prediction.warnings.push_back({.code = "graph", .message = std::move(remark)});
  return run;
}

bool MemoryMargin::is_tight(const sim::Prediction& prediction) const {
  const auto worst = static_cast<std::size_t>(prediction.worst_memory);
  return is_tight(prediction.classes[worst].memory.peak,
                  prediction.memory_capacity - prediction.memory_reserve,
                  prediction.memory_capacity);
}

MemoryMargin memory_margin_of(const LoadedStudy& study) {
  if (study.memory_margin) return {.part = *study.memory_margin, .source = "memory_margin"};
  const auto groups = study.cluster.node_groups();
  const bool is_of_nvidia = std::ranges::all_of(groups, [](const NodeGroup& group) {
    return group.node->device->compute_capability.evidence != yaml::Evidence::kTransferred;
  });
  const auto own = study.errors.memory_of.find(study.strategy.framework.name);
  const bool is_own = is_of_nvidia && own != study.errors.memory_of.end();
  const ErrorRange& of = is_own ? own->second : study.errors.memory;
  return {
      .part = 1 - 1 / of.high,
      .source = fmt::format("9 of 10 of {} measured peaks{} are at most {:.3g} % above the "
                            "predicted ones",
                            of.measurements, is_own ? " with " + own->first + " or its like" : "",
                            100 * (of.high - 1))};
}

}  // namespace foreshard::study
