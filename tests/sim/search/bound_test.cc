// The search's lower bound against the simulation, on thousands of random models, strategies and
// clusters: a bound that is too high drops the best strategy unseen.
#include <atomic>
#include <map>
#include <mutex>
#include <span>
#include <thread>

#include "tests/seeds.h"
#include "tests/strategies/lower/random_strategy.h"
#include "tests/test.h"

#include "sim/search/estimate.h"
#include "sim/search/internal/peaks.h"
#include "sim/simulate/cost.h"
#include "sim/simulate/simulate.h"
#include "sim/study/run.h"
#include "strategies/parallelism/layers.h"
#include "strategies/program/lower/exchanges.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::search::bound_test {

const unsigned kSeeds = seeds(1'000U, 29'000U);
// The least number of seeds whose strategy has few kinds of layers and fits the cluster's devices.
const unsigned kFewest = kSeeds / 29 * 20;

std::string node(const char* device, int gpus, const char* rest) {
  return std::string("{device: ") + device + ", gpus: " + std::to_string(gpus) + ", " + rest + "}";
}

// Sixteen devices and more: nodes with an adapter for each device and with one for all, devices of
// two kinds, some that are down or slow, slow links, switches that are not enough for all.
const std::vector<std::string>& clusters() {
  const std::string a100 = node("A100-SXM-80GB", 4,
                                "nvlink: {bandwidth: 300 GB/s}, nics: {count: 1, bandwidth: 200 "
                                "Gbit/s}");
  const std::string h100 =
      node("H100-SXM", 4, "nvlink: {bandwidth: 450 GB/s}, nics: {count: 4, bandwidth: 400 Gbit/s}");
  const auto groups = [](const std::string& first, const std::string& second,
                         const std::string& rest) {
    return "{name: random, groups: [{nodes: 2, node: " + first + "}, {nodes: 2, node: " + second +
           "}], " + rest + "}";
  };
  const std::string flat = "fabric: {kind: single-switch}";
  static const std::vector<std::string> all{
      "two-dgx-a100",
      "two-dgx-h100",
      "two-dgx-1v",
      groups(a100, a100, flat),
      groups(a100, h100, flat),
      groups(h100, h100, flat + ", down: [node1/gpu2, node2/nic0]"),
      groups(a100, h100, flat + ", degraded: [{devices: node2/gpu1, speed: 0.6}]"),
      groups(h100, h100, flat + ", degraded: [{links: 'node1/nic0', factor: 0.1}]"),
      R"({name: tree, nodes: 16,
          node: {device: H100-SXM, gpus: 1, nics: {count: 1, bandwidth: 400 Gbit/s}},
          fabric: {kind: rail-fat-tree, levels: 2, nodes_per_pod: 4, oversubscription: [4]}})",
  };
  return all;
}

// The same in the proportions of models that are trained, where that is sound.
void enlarge(Training& training) {
  Model model = training.model;
  for (std::int64_t* width :
       {&model.hidden, &model.head_dim, &model.ffn, &model.vocabulary, &model.sequence,
        &model.position_table, &model.window, &model.expert_ffn, &model.shared_ffn,
        &model.key_value_rank, &model.query_rank, &model.rotary_dim, &model.value_dim})
    *width *= 32;
  if (checked(model) && faults_in(training.strategy, model, training.strategy.devices()).empty())
    training.model = model;
}

Training training_of(unsigned seed) {
  std::mt19937 random(seed);
  Training training = random_training(random, 16);
  quantize(training.strategy, seed);
  replicate_shards(training.strategy, seed);
  give_context(training, seed);
  give_experts(training, seed);
  give_adapters(training, seed);
  give_predictions(training, seed);
  part_gates(training, seed);
  recompute_parts(training, seed);
  reschedule(training, seed);
  overlap_exchanges(training, seed);
  offload(training, seed);
  if (seed % 4 != 0) enlarge(training);
  return training;
}

struct Found {
  std::atomic<unsigned> compared = 0;
  std::atomic<unsigned> skipped = 0;
  std::mutex mutex{};
  std::vector<std::string> above{};
  std::vector<double> ratios{};
};

// What a search works with, of one cluster; one for each thread.
struct Ground {
  explicit Ground(const std::string& name)
      : study(study_of(name)), cluster(*study::cluster_of(study, study.pool.devices)) {}

  static study::LoadedStudy study_of(const std::string& name) {
    return value_of(study::load_study({.cluster = name,
                                       .model = "gpt-1.7b",
                                       .strategy = "{global_batch: 64}",
                                       .sizes_matter = false},
                                      shipped_options()));
  }

  // The cluster at the clocks of the slowest of the pool's first `devices` devices.
  const ClusterView& at_clocks_of(std::int64_t devices) {
    const auto known = of_devices.find(devices);
    if (known != of_devices.end()) return known->second;
    const std::span used(study.pool.devices);
    return of_devices
        .emplace(devices,
                 value_of(study::cluster_of(study, used.first(static_cast<std::size_t>(devices)))))
        .first->second;
  }

  study::LoadedStudy study;
  ClusterView cluster;
  std::map<std::int64_t, ClusterView> of_devices{};
};

void compare(Ground& ground, const Training& training, unsigned seed, Found& found) {
  const auto& [model, strategy] = training;
  const auto blocks = lower::lower_blocks(model, strategy);
  if (!blocks || blocks->all().size() > kBlocks || strategy.devices() > ground.study.pool.size()) {
    ++found.skipped;
    return;
  }
  const sim::SimulatedCost cost(ground.cluster, ground.study.communication,
                                lower::routing_of(model));
  Estimator estimator(model, ground.cluster, ground.study.pool.devices, cost, {}, 0,
                      ground.study.pool.devices);
  const auto estimate = estimator.estimate(strategy);
  auto program = lower::lower(model, strategy, {});
  if (!estimate || !program) {
    ++found.skipped;
    return;
  }
  const ClusterView& own = ground.at_clocks_of(strategy.devices());
  const auto simulated = sim::simulate(
      own, study::with_launch_times(ground.study.pool.placed(*std::move(program)), own),
      ground.study.communication, {.critical_path = false});
  if (!simulated) {
    ++found.skipped;
    return;
  }
  ++found.compared;
  const std::lock_guard lock(found.mutex);
  found.ratios.push_back(estimate->bound / simulated->step);
  if (estimate->bound > simulated->step * (1 + 1e-9))
    found.above.push_back("seed " + std::to_string(seed) + " on " + ground.study.cluster.name +
                          ": " + std::to_string(estimate->bound / simulated->step) + " of " +
                          describe(training));
  // What is told without a plan is no more, also of what computes nothing again.
  Strategy base = strategy;
  base.recompute = Recompute::kNone;
  base.recompute_layers = 0;
  for (const Strategy* const of : {&strategy, &std::as_const(base)}) {
    for (const auto& least : {estimator.least_step(*of), estimator.least_step_laid_out(*of)})
      if (least && *least > estimate->bound * (1 + 1e-9))
        found.above.push_back("seed " + std::to_string(seed) + ": without a plan " +
                              std::to_string(*least / estimate->bound) + " of the bound of " +
                              describe(training));
  }
}

TEST(Bound, IsNoMoreThanTheSimulation) {
  Found found;
  std::atomic<unsigned> next = 0;
  const auto work = [&] {
    std::vector<Ground> grounds;
    for (const std::string& name : clusters()) grounds.emplace_back(name);
    for (unsigned seed = next++; seed < kSeeds; seed = next++)
      compare(grounds[seed % grounds.size()], training_of(seed), seed, found);
  };
  {
    const std::jthread other(work);
    work();
  }
  std::ranges::sort(found.above);
  for (const std::string& one : found.above) ADD_FAILURE() << one;
  EXPECT_GE(found.compared, kFewest);
  std::ranges::sort(found.ratios);
  RecordProperty("compared", std::to_string(found.compared));
  RecordProperty("median_ratio", std::to_string(found.ratios[found.ratios.size() / 2]));
}

}  // namespace foreshard::search::bound_test
