// The search of `foreshard search` for a general graph (search.h). Solutions of the tables and of
// the rules are compared by estimate; the best few are simulated.
#include "sim/search/graph/search.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/threads.h"

#include "sim/search/graph/annotations.h"
#include "sim/search/graph/flat.h"
#include "sim/search/graph/meshes.h"
#include "sim/search/graph/pipeline.h"
#include "sim/search/graph/tables.h"
#include "sim/simulate/cost.h"
#include "sim/simulate/simulate.h"
#include "sim/study/expense.h"
#include "sim/study/run.h"
#include "strategies/graph/distribute.h"
#include "strategies/graph/graph.h"
#include "strategies/graph/layout.h"
#include "strategies/graph/rebatch.h"
#include "strategies/graph/units.h"
#include "strategies/parallelism/pipeline.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/graph.h"
#include "strategies/program/lower/graph_units.h"
#include "topology/cluster_view.h"

namespace foreshard::search {
namespace {

// How many micro-batches the stages of a graph's pipeline take at a time, where they are on
// devices of several kinds (R4.6). Micro-batches are a quarter to four times as large as in the
// graph's shapes, and all stages on one kind take 1, 2, 4 or 8 of them per pass. Kinds with large
// fixed costs (launches, small kernels) do better with more, and kinds that others wait for with
// fewer.

constexpr std::array<std::int64_t, 4> kTaken{1, 2, 4, 8};
constexpr std::array<std::pair<std::int64_t, std::int64_t>, 5> kSizes{
    {{1, 4}, {1, 2}, {1, 1}, {2, 1}, {4, 1}}};

// stage -> number of its kind; stages with the same types of device have the same kind.
std::vector<std::size_t> kinds_of(const std::vector<std::vector<std::int32_t>>& stages,
                                  const ClusterView& cluster) {
  std::vector<std::set<DeviceTypeId>> known;
  std::vector<std::size_t> kinds;
  for (const auto& devices : stages) {
    std::set<DeviceTypeId> types;
    for (const std::int32_t id : devices)
      types.insert(cluster.devices()[DeviceId{id}.index()].type);
    const auto found = std::ranges::find(known, types);
    kinds.push_back(static_cast<std::size_t>(found - known.begin()));
    if (found == known.end()) known.push_back(std::move(types));
  }
  return kinds;
}

// Whether the grouping's granularities suit its micro-batches and the graph.
bool suits(const Grouping& grouping, const Graph& graph, std::int64_t batch) {
  const Strategy& strategy = grouping.strategy;
  const std::int64_t samples = strategy.micro_batch * strategy.data_parallel;
  if (strategy.global_batch % samples != 0) return false;
  return std::ranges::all_of(strategy.granularity, [&](std::int64_t taken) {
    return strategy.micro_batches() % taken == 0 && rebatched(graph, batch, taken * samples);
  });
}

// stage -> devices of its ranks, in the order of the mesh without the pipeline.
std::vector<std::vector<std::int32_t>> devices_of_stages(const Grouping& grouping) {
  const ProcessMesh mesh = mesh_from(grouping.mesh());
  const Axis pipeline = axis_of(mesh.axes, "pipeline");
  std::vector<std::vector<std::int32_t>> stages(
      static_cast<std::size_t>(grouping.strategy.pipeline_parallel));
  for (const std::int32_t rank : mesh.ranks)
    stages[static_cast<std::size_t>(coordinate_of(mesh, rank, pipeline))].push_back(
        grouping.place.pool.devices[static_cast<std::size_t>(rank)]);
  return stages;
}

// The grouping itself first. Where its stages are on devices of several kinds, groupings with
// other micro_batch and granularity follow, as far as the graph can be rebatched to those numbers
// of samples (rebatch.h).
// \param batch  samples in the graph's shapes.
std::vector<Grouping> granularities_of(const Grouping& grouping, const Graph& graph,
                                       std::int64_t batch, const ClusterView& cluster) {
  std::vector<Grouping> all{grouping};
  const auto stages = devices_of_stages(grouping);
  const std::vector<std::size_t> kind_of = kinds_of(stages, cluster);
  const std::size_t kinds = *std::ranges::max_element(kind_of) + 1;
  if (kinds == 1 || grouping.strategy.schedule != "1f1b" || grouping.strategy.virtual_stages > 1)
    return all;
  std::vector<std::size_t> chosen(kinds);  // kind -> index into kTaken
  while (true) {
    // If all stages take several micro-batches at a time, larger micro-batches one at a time do the
    // same.
    const bool is_least = std::ranges::min(chosen) == 0;
    for (const auto& [times, parts] : kSizes) {
      Grouping one = grouping;
      if (!is_least || times * grouping.strategy.micro_batch % parts != 0) continue;
      one.strategy.micro_batch = times * grouping.strategy.micro_batch / parts;
      one.strategy.granularity.clear();
      for (const std::size_t kind : kind_of)
        one.strategy.granularity.push_back(kTaken[chosen[kind]]);
      if (!suits(one, graph, batch)) continue;
      all.push_back(one);
      if (std::ranges::max(chosen) > 0 || times == parts) continue;
      one.strategy.granularity.clear();  // without granularities, like the grouping itself
      all.push_back(std::move(one));
    }
    std::size_t k = 0;
    for (; k < kinds; ++k) {
      if (++chosen[k] < kTaken.size()) break;
      chosen[k] = 0;
    }
    if (k == kinds) return all;
  }
}

// How often a memory limit is lowered after a simulation that needs more.
constexpr int kTightenings = 3;

// Calls `work(cluster, i)` for each i, several at a time. A cluster caches the routes that it
// finds, so each thread has its own.
template <class Work>
void in_parallel(const study::LoadedStudy& study, std::int64_t threads, std::size_t count,
                 Work work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    const auto cluster = cluster_of(study, study.pool.devices);
    if (!cluster) return;  // it could be built earlier
    for (std::size_t i = next++; i < count; i = next++) work(*cluster, i);
  };
  const auto most = std::max<std::int64_t>(static_cast<std::int64_t>(count), 1);
  in_threads(std::clamp<std::int64_t>(threads, 1, most), [&](std::int64_t) { run(); });
}

// stage -> bytes for tensors on its smallest device.
std::vector<double> rooms_of(const ClusterView& cluster, const Grouping& grouping) {
  const Strategy& strategy = grouping.strategy;
  std::vector<double> rooms;
  for (const auto& devices : devices_of_stages(grouping)) {
    std::optional<Bytes> least;
    for (const std::int32_t device : devices) {
      const DeviceTypeId type = cluster.devices()[static_cast<std::size_t>(device)].type;
      const Bytes memory = *cluster.device_types()[type.index()].memory;
      least = std::min(least.value_or(memory), memory);
    }
    rooms.push_back((*least - reserve_of(strategy) - strategy.framework->workspace).in_base());
  }
  return rooms;
}

// operator of the flat graph -> stage. Empty where the iterations of a loop are on several stages.
std::vector<std::size_t> stages_of(const Graph& graph, const FlatGraph& flat_graph,
                                   const std::vector<std::string>& cuts, const Strategy& strategy) {
  const CutGraph cut = *with_cuts(graph, cuts);  // the study's cuts were checked
  if (cut.graph.operators.size() != graph.operators.size()) return {};
  const auto pieces = lower::pieces_of(strategy, cut.begins.size() + 1);
  std::vector<std::size_t> stages;
  for (const std::size_t op : flat_graph.from) {
    const auto unit =
        static_cast<std::int32_t>(std::ranges::upper_bound(cut.begins, op) - cut.begins.begin());
    const auto piece =
        std::ranges::find_if(pieces, [&](const auto& run) { return run.contains(unit); });
    stages.push_back(static_cast<std::size_t>(schedule::stage_of(
        placement_of(strategy), strategy.pipeline_parallel, piece - pieces.begin())));
  }
  return stages;
}

// The study's graph with shapes for the grouping's micro-batches.
Graph graph_for(const study::LoadedStudy& study, const Grouping& grouping) {
  const std::int64_t samples = grouping.strategy.micro_batch * grouping.strategy.data_parallel;
  auto graph = rebatched(study.graph->graph, study.graph->batch, samples);
  FORESHARD_CHECK(graph);  // granularities_of() tried it
  return *std::move(graph);
}
FlatGraph flat_for(const Graph& graph) {
  auto made = flat(graph);
  FORESHARD_CHECK(made);  // search_graph() tried it
  return *std::move(made);
}
std::int64_t batch_for(const Grouping& grouping) {
  return grouping.strategy.micro_batch * grouping.strategy.data_parallel;
}

// Finds plans on one grouping.
class OnGrouping {
 public:
  OnGrouping(const study::LoadedStudy& study, const ClusterView& cluster,
             const GraphSearchOptions& options, const Grouping& grouping)
      : study_(study),
        cluster_(cluster),
        options_(options),
        grouping_(grouping),
        graph_(graph_for(study, grouping)),
        flat_(flat_for(graph_)),
        mesh_(grouping.mesh()),
        cost_(cluster, study.communication),
        tables_(tables_of(flat_.graph, grouping.strategy, mesh_of_graph())),
        rooms_(rooms_of(cluster, grouping)) {
    if (tables_.stages() == 1) rooms_ = {*std::ranges::min_element(rooms_)};
  }

  // The plans with their estimates. The first is the plan by operators, if there is one.
  std::vector<GraphCandidate> candidates() {
    std::vector<GraphCandidate> found;
    if (options_.level > 1)
      if (auto one = by_operators()) found.push_back(*std::move(one));
    for (AppliedRule& rule : applied(options_.rules, graph_, mesh_, batch_for(grouping_)))
      found.push_back(by_rule(std::move(rule)));
    if (!study_.graph->annotations.empty())
      found.push_back(by_rule({.name = "study", .annotations = study_.graph->annotations}));
    return found;
  }

  // The plan of least estimate that fills no stage's memory beyond the part `most`.
  std::optional<GraphCandidate> within(double most) const { return by_operators(most); }
  // The part of the fullest stage's memory that a plan fills, by estimate.
  double fill_of(const GraphCandidate& candidate) const {
    const auto choice = choice_of_annotations(candidate.annotations);
    return choice ? search::fill_of(tables_, rooms_, *choice) : 0;
  }

 private:
  MeshOfGraph mesh_of_graph() const {
    const std::vector<std::size_t> stages =
        stages_of(graph_, flat_, study_.graph->cuts, grouping_.strategy);
    return {.axes = mesh_,
            .cost = &cost_,
            .placement = {.cluster = &cluster_, .device_of_rank = grouping_.place.pool.devices},
            .devices_of_stage = stages.empty() ? std::vector<std::vector<std::int32_t>>{}
                                               : devices_of_stages(grouping_),
            .stage_of = stages,
            .batch = batch_for(grouping_),
            .runs = flat_.runs,
            .copies = flat_.copies,
            .alike = flat_.alike};
  }

  std::optional<GraphCandidate> by_operators(double most = 1) const {
    SolveOptions solve_options = options_.solve;
    if (options_.level < 3) solve_options.seconds = 0;
    const auto answer = solve(tables_, rooms_, most, solve_options);
    if (!answer) return std::nullopt;
    return GraphCandidate{
        .grouping = grouping_,
        .by = "operators",
        .annotations = annotations_of(flat_.graph, tables_, answer->choice, mesh_),
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
      const double cost = walked_step(tables_, grouping_.strategy, *choice);
      if (cost < kForbidden) candidate.estimate = Seconds::from_base(cost);
    }
    return candidate;
  }

  std::optional<std::vector<std::size_t>> choice_of_annotations(
      const std::vector<Annotation>& annotations) const {
    Graph annotated = flat_.graph;
    if (!annotate(annotated, mesh_, {.annotations = annotations, .batch = batch_for(grouping_)}))
      return std::nullopt;
    const auto sharded = distribute(annotated, mesh_, Flow::kBothWays, BackwardPass::kFollows);
    return sharded ? choice_of(flat_.graph, tables_, *sharded) : std::nullopt;
  }

  const study::LoadedStudy& study_;
  const ClusterView& cluster_;
  const GraphSearchOptions& options_;
  const Grouping& grouping_;
  Graph graph_;
  FlatGraph flat_;
  std::vector<MeshAxis> mesh_;
  sim::SimulatedCost cost_;
  Tables tables_;
  std::vector<double> rooms_;  // stage -> bytes
};

Result<program::Program> program_of(const study::LoadedStudy& study, const ClusterView& cluster,
                                    const GraphCandidate& candidate) {
  const Strategy& strategy = candidate.grouping.strategy;
  Graph graph = graph_for(study, candidate.grouping);
  const study::Pool& pool = candidate.grouping.place.pool;
  FORESHARD_TRY(
      annotate(graph, candidate.grouping.mesh(),
               {.annotations = candidate.annotations, .batch = batch_for(candidate.grouping)}));
  const sim::SimulatedCost cost(cluster, study.communication);
  FORESHARD_ASSIGN(
      auto lowered,
      lower::lower_graph(graph, strategy,
                         {.axes = candidate.grouping.axes,
                          .cuts = study.graph->cuts,
                          .tokens_per_sample = study.graph->tokens_per_sample,
                          .batch = batch_for(candidate.grouping),
                          .seed = study.graph->seed,
                          .cost = &cost,
                          .placement = {.cluster = &cluster, .device_of_rank = pool.devices}}));
  auto placed = study::with_launch_times(pool.placed(std::move(lowered.program)), cluster);
  FORESHARD_TRY(program::verify(placed));
  return placed;
}

// Simulates a plan and fills in the results.
Status simulate(const study::LoadedStudy& study, const ClusterView& cluster,
                GraphCandidate& candidate) {
  FORESHARD_ASSIGN(const auto program, program_of(study, cluster, candidate));
  const std::span<const std::int32_t> used = std::span(candidate.grouping.place.pool.devices)
                                                 .first(static_cast<std::size_t>(program.ranks()));
  FORESHARD_ASSIGN(sim::Prediction prediction,
                   study::simulated(study, candidate.grouping.strategy, used, cluster, program,
                                    {.critical_path = false}));
  study::set_evidence(prediction, study);
  candidate.step = prediction.step;
  candidate.low = prediction.low;
  candidate.high = prediction.high;
  candidate.unmeasured = study::unmeasured_in(prediction);
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

// Solves a grouping's plan by operators, which did not fit, again with less and less memory until
// it fits. The last plan is kept in any case.
Status fit(const study::LoadedStudy& study, const ClusterView& cluster,
           const GraphSearchOptions& options, GraphCandidate& candidate) {
  OnGrouping grouping(study, cluster, options, candidate.grouping);
  double fill = grouping.fill_of(candidate);
  for (int i = 0; i < kTightenings && !candidate.fits; ++i) {
    auto next = grouping.within(fill * (candidate.capacity / candidate.peak));
    if (!next) return {};
    const double less = grouping.fill_of(*next);
    if (!(less < fill)) return {};
    fill = less;
    FORESHARD_TRY(simulate(study, cluster, *next));
    candidate = *std::move(next);
  }
  return {};
}

// Adds each grouping's variants with other granularities after it.
void add_granularities(const study::LoadedStudy& study, const ClusterView& cluster,
                       std::vector<Grouping>& groupings) {
  std::vector<Grouping> all;
  for (const Grouping& one : groupings)
    std::ranges::move(granularities_of(one, study.graph->graph, study.graph->batch, cluster),
                      std::back_inserter(all));
  groupings = std::move(all);
}

// Sorts by estimate; plans without an estimate come last, in the order of the groupings.
void rank(std::vector<GraphCandidate>& candidates) {
  std::ranges::stable_sort(candidates, [](const GraphCandidate& a, const GraphCandidate& b) {
    if (a.estimate.has_value() != b.estimate.has_value()) return a.estimate.has_value();
    return a.estimate && *a.estimate < *b.estimate;
  });
}

// Whether two plans differ only in the names of axes, as far as can be known before a simulation.
bool are_alike(const GraphCandidate& a, const GraphCandidate& b) {
  constexpr double kSame = 1e-12;
  return a.estimate && b.estimate && a.by == b.by &&
         std::abs(*a.estimate / *b.estimate - 1) < kSame &&
         a.grouping.place.pool.devices == b.grouping.place.pool.devices &&
         a.grouping.strategy.granularity == b.grouping.strategy.granularity &&
         batch_for(a.grouping) == batch_for(b.grouping);
}

std::int64_t several_ranks(const Grouping& grouping) {
  return std::ranges::count_if(grouping.mesh(), [](const MeshAxis& axis) { return axis.size > 1; });
}

// Keeps one of several equivalent plans in its place, one with the fewest axes, and moves the
// others behind all other plans: they are simulated last.
// \pre they are ranked.
void put_repetitions_last(std::vector<GraphCandidate>& candidates) {
  std::vector<GraphCandidate> first;
  std::vector<GraphCandidate> repetitions;
  for (GraphCandidate& one : candidates) {
    const bool is_known = !first.empty() && are_alike(first.back(), one);
    if (is_known && several_ranks(one.grouping) < several_ranks(first.back().grouping))
      std::swap(one, first.back());
    (is_known ? repetitions : first).push_back(std::move(one));
  }
  std::ranges::move(repetitions, std::back_inserter(first));
  candidates = std::move(first);
}

// How many operators are split over some axis other than the batch's.
std::int64_t split_operators(const std::vector<Annotation>& annotations) {
  return std::ranges::count_if(annotations, [](const Annotation& one) {
    return std::ranges::any_of(one.splits,
                               [](const auto& split) { return split.second != "data"; });
  });
}

}  // namespace

Result<GraphSearchResult> search_graph(const study::LoadedStudy& study,
                                       const GraphSearchOptions& options) {
  if (const auto without_bodies = flat(study.graph->graph); !without_bodies)
    return study.loader.error_at("graph", without_bodies.error().message);
  FORESHARD_ASSIGN(const auto whole, cluster_of(study, study.pool.devices));
  FORESHARD_ASSIGN(const auto places, device_subsets_of(study, whole));
  Groupings groupings = groupings_of(study, places, options.level == 3);
  if (options.level > 1) add_granularities(study, whole, groupings.all);
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
  put_repetitions_last(candidates);
  result.plans = std::ssize(candidates);
  candidates.resize(std::min(
      candidates.size(), static_cast<std::size_t>(std::max<std::int64_t>(options.simulate, 1))));

  std::vector<Status> states(candidates.size());
  std::atomic<std::int64_t> done{0};
  in_parallel(
      study, options.threads, candidates.size(), [&](const ClusterView& cluster, std::size_t i) {
        GraphCandidate& one = candidates[i];
        states[i] = simulate(study, cluster, one);
        if (states[i].ok() && !one.fits && one.by == "operators")
          states[i] = fit(study, cluster, options, one);
        one.operators_split = split_operators(one.annotations);
        one.annotations = without_redundant(graph_for(study, one.grouping), one.grouping.mesh(),
                                            batch_for(one.grouping), std::move(one.annotations));
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
