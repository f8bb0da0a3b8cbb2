#include "sim/search/graph/search.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <thread>
#include <utility>

#include "sim/search/graph/annotations.h"
#include "sim/search/graph/tables.h"
#include "sim/simulate/cost.h"
#include "sim/simulate/simulate.h"
#include "sim/study/expense.h"
#include "sim/study/run.h"
#include "strategies/graph/distribute.h"
#include "strategies/parallelism/reserve.h"
#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/graph.h"

namespace foreshard::search {
namespace {

// Times that a limit of memory is lowered to what the simulation says.
constexpr int kTightenings = 3;

// Calls `work(cluster, i)` for each i, several at a time. Routes are remembered by the cluster that
// finds them, so each thread has its own.
template <class Work>
void in_parallel(const study::LoadedStudy& study, std::int64_t threads, std::size_t count,
                 Work work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    const auto cluster = cluster_of(study);
    if (!cluster) return;  // it could be built before
    for (std::size_t i = next++; i < count; i = next++) work(*cluster, i);
  };
  const auto most = std::max<std::int64_t>(static_cast<std::int64_t>(count), 1);
  std::vector<std::jthread> workers;
  for (std::int64_t t = 1; t < std::clamp<std::int64_t>(threads, 1, most); ++t)
    workers.emplace_back(run);
  run();
}

Bytes room_of(const ClusterView& cluster, const study::LoadedStudy& study,
              const Strategy& strategy) {
  std::optional<Bytes> least;
  for (const std::int32_t device : study.pool.devices) {
    const DeviceTypeId type = cluster.devices()[static_cast<std::size_t>(device)].type;
    const Bytes memory = *cluster.device_types()[type.index()].memory;
    least = std::min(least.value_or(memory), memory);
  }
  return *least - reserve_of(strategy) - strategy.framework->workspace;
}

// What is found on one grouping.
class OnGrouping {
 public:
  OnGrouping(const study::LoadedStudy& study, const ClusterView& cluster,
             const GraphSearchOptions& options, const Grouping& grouping)
      : study_(study),
        cluster_(cluster),
        options_(options),
        grouping_(grouping),
        mesh_(grouping.mesh()),
        cost_(cluster, study.communication),
        tables_(
            tables_of(graph(), grouping.strategy,
                      {.axes = mesh_,
                       .cost = &cost_,
                       .placement = {.cluster = &cluster, .device_of_rank = study.pool.devices}})) {
    tables_.problem.limit = room_of(cluster, study, grouping.strategy).in_base();
  }

  // By estimate. The first is the one by operators, if there is one.
  std::vector<GraphCandidate> candidates() {
    std::vector<GraphCandidate> found;
    if (options_.level > 1)
      if (auto one = by_operators()) found.push_back(*std::move(one));
    for (AppliedRule& rule : applied(options_.rules, graph(), mesh_, study_.graph->batch))
      found.push_back(by_rule(std::move(rule)));
    if (!study_.graph->annotations.empty())
      found.push_back(by_rule({.name = "study", .annotations = study_.graph->annotations}));
    return found;
  }

  // The least estimate whose memory is below `limit` bytes.
  std::optional<GraphCandidate> within(double limit) {
    tables_.problem.limit = limit;
    return by_operators();
  }
  double load_of(const GraphCandidate& candidate) const {
    const auto choice = choice_of_annotations(candidate.annotations);
    return choice ? tables_.problem.load_of(*choice) : 0;
  }

 private:
  const Graph& graph() const { return study_.graph->graph; }

  std::optional<GraphCandidate> by_operators() const {
    SolveOptions solve_options = options_.solve;
    if (options_.level < 3) solve_options.seconds = 0;
    const auto answer = solve(tables_.problem, solve_options);
    if (!answer) return std::nullopt;
    return GraphCandidate{.grouping = grouping_,
                          .by = "operators",
                          .annotations = annotations_of(graph(), tables_, answer->choice, mesh_),
                          .estimate = Seconds::from_base(answer->cost),
                          .gap = answer->gap(),
                          .solver = answer->by,
                          .timed_out = answer->timed_out};
  }

  GraphCandidate by_rule(AppliedRule rule) const {
    GraphCandidate candidate{.grouping = grouping_,
                             .by = std::move(rule.name),
                             .doc = std::move(rule.doc),
                             .annotations = std::move(rule.annotations)};
    if (const auto choice = choice_of_annotations(candidate.annotations)) {
      const double cost = tables_.problem.cost_of(*choice);
      if (cost < kForbidden) candidate.estimate = Seconds::from_base(cost);
    }
    return candidate;
  }

  std::optional<std::vector<std::size_t>> choice_of_annotations(
      const std::vector<Annotation>& annotations) const {
    Graph annotated = graph();
    if (!annotate(annotated, mesh_, {.annotations = annotations, .batch = study_.graph->batch}))
      return std::nullopt;
    const auto sharded = distribute(annotated, mesh_, Flow::kBothWays, BackwardPass::kFollows);
    return sharded ? choice_of(graph(), tables_, *sharded) : std::nullopt;
  }

  const study::LoadedStudy& study_;
  const ClusterView& cluster_;
  const GraphSearchOptions& options_;
  const Grouping& grouping_;
  std::vector<MeshAxis> mesh_;
  sim::SimulatedCost cost_;
  Tables tables_;
};

Result<program::Program> program_of(const study::LoadedStudy& study, const ClusterView& cluster,
                                    const GraphCandidate& candidate) {
  const Strategy& strategy = candidate.grouping.strategy;
  Graph graph = study.graph->graph;
  FORESHARD_TRY(annotate(graph, candidate.grouping.mesh(),
                         {.annotations = candidate.annotations, .batch = study.graph->batch}));
  const sim::SimulatedCost cost(cluster, study.communication);
  FORESHARD_ASSIGN(auto lowered,
                   lower::lower_graph(
                       graph, strategy,
                       {.axes = candidate.grouping.axes,
                        .cuts = study.graph->cuts,
                        .tokens_per_sample = study.graph->tokens_per_sample,
                        .seed = study.graph->seed,
                        .cost = &cost,
                        .placement = {.cluster = &cluster, .device_of_rank = study.pool.devices}}));
  auto placed = study::with_launch_times(study.pool.placed(std::move(lowered.program)), cluster);
  FORESHARD_TRY(program::verify(placed));
  return placed;
}

// Fills in what a simulation says.
Status simulate(const study::LoadedStudy& study, const ClusterView& cluster,
                GraphCandidate& candidate) {
  const Strategy& strategy = candidate.grouping.strategy;
  FORESHARD_ASSIGN(const auto program, program_of(study, cluster, candidate));
  FORESHARD_ASSIGN(sim::Prediction prediction,
                   sim::simulate(cluster, program, study.communication,
                                 {.critical_path = false,
                                  .reserve = reserve_of(strategy),
                                  .links = study::links_of(study.cluster)}));
  set_interval(prediction, *strategy.framework, study.errors);
  candidate.step = prediction.step;
  candidate.low = prediction.low;
  candidate.high = prediction.high;
  candidate.peak =
      prediction.classes[static_cast<std::size_t>(prediction.worst_memory)].memory.peak;
  candidate.capacity = prediction.memory_capacity - prediction.memory_reserve;
  candidate.fits = prediction.fits;
  candidate.tflops_per_device = prediction.model_tflops_per_device;
  candidate.breakdown = prediction.breakdown;
  candidate.expense = study::expense_of(prediction, cluster, study.cluster);
  candidate.idle = prediction.idle;
  return {};
}

// The plan by operators of a grouping, which did not fit, with less and less memory until it does.
// What comes out last is kept in any case.
Status fit(const study::LoadedStudy& study, const ClusterView& cluster,
           const GraphSearchOptions& options, GraphCandidate& candidate) {
  OnGrouping grouping(study, cluster, options, candidate.grouping);
  double load = grouping.load_of(candidate);
  for (int i = 0; i < kTightenings && !candidate.fits; ++i) {
    auto next = grouping.within(load * (candidate.capacity / candidate.peak));
    if (!next) return {};
    const double less = grouping.load_of(*next);
    if (!(less < load)) return {};
    load = less;
    FORESHARD_TRY(simulate(study, cluster, *next));
    candidate = *std::move(next);
  }
  return {};
}

// By estimate; those without one last, in the order of the groupings.
void rank(std::vector<GraphCandidate>& candidates) {
  std::ranges::stable_sort(candidates, [](const GraphCandidate& a, const GraphCandidate& b) {
    if (a.estimate.has_value() != b.estimate.has_value()) return a.estimate.has_value();
    return a.estimate && *a.estimate < *b.estimate;
  });
}

// Operators that are split over some axis which is not the batch's.
std::int64_t split_operators(const std::vector<Annotation>& annotations) {
  return std::ranges::count_if(annotations, [](const Annotation& one) {
    return std::ranges::any_of(one.splits,
                               [](const auto& split) { return split.second != "data"; });
  });
}

}  // namespace

Result<GraphSearchResult> search_graph(const study::LoadedStudy& study,
                                       const GraphSearchOptions& options) {
  if (!study.graph->graph.bodies.empty())
    return study.loader.error_at("graph", "a search of a graph knows no loops and conditions yet",
                                 "write the iterations out, or simulate annotations one by one");
  FORESHARD_TRY(cluster_of(study));
  Groupings groupings = groupings_of(study);
  GraphSearchResult result;
  result.groupings = std::ssize(groupings.all);
  result.refused = std::move(groupings.refused);
  result.remarks = unmatched(options.rules, study.graph->graph);
  if (groupings.all.empty()) {
    std::vector<std::string> why;
    for (const auto& [fault, count] : result.refused)
      why.push_back(fmt::format("{} of them: {}", count, fault));
    return study.loader.error_at("graph", "no grouping of the devices suits the graph",
                                 fmt::format("{}", fmt::join(why, "; ")));
  }

  std::vector<std::vector<GraphCandidate>> found(groupings.all.size());
  in_parallel(study, options.threads, found.size(), [&](const ClusterView& cluster, std::size_t i) {
    found[i] = OnGrouping(study, cluster, options, groupings.all[i]).candidates();
  });
  std::vector<GraphCandidate> candidates;
  for (auto& some : found) {
    const bool has_own = !some.empty() && some.front().by == "operators";
    if (options.level > 1 && !has_own) ++result.without_answer;
    for (GraphCandidate& one : some) candidates.push_back(std::move(one));
  }
  rank(candidates);
  result.plans = std::ssize(candidates);
  candidates.resize(std::min(
      candidates.size(), static_cast<std::size_t>(std::max<std::int64_t>(options.simulate, 1))));

  std::vector<Status> states(candidates.size());
  std::atomic<std::int64_t> done{0};
  in_parallel(study, options.threads, candidates.size(),
              [&](const ClusterView& cluster, std::size_t i) {
                GraphCandidate& one = candidates[i];
                states[i] = simulate(study, cluster, one);
                if (states[i].ok() && !one.fits && one.by == "operators")
                  states[i] = fit(study, cluster, options, one);
                one.operators_split = split_operators(one.annotations);
                one.annotations = needed_of(study.graph->graph, one.grouping.mesh(),
                                            study.graph->batch, std::move(one.annotations));
                if (options.progress) options.progress(++done, std::ssize(candidates));
              });
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!states[i].ok()) {
      ++result.failed[states[i].error().message];
      continue;
    }
    result.simulated.push_back(std::move(candidates[i]));
  }
  std::ranges::stable_sort(result.simulated, [](const GraphCandidate& a, const GraphCandidate& b) {
    return a.fits != b.fits ? a.fits : a.step < b.step;
  });
  return result;
}

}  // namespace foreshard::search
