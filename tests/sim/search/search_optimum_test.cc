// The search against simulating its whole space, on clusters whose devices and links differ.
#include <nlohmann/json.hpp>

#include "tests/base/temporary_folder.h"
#include "tests/test.h"

#include "sim/search/cuts.h"
#include "sim/search/device_subset.h"
#include "sim/search/internal/race.h"
#include "sim/search/internal/ranking.h"
#include "sim/search/internal/simulations.h"
#include "sim/search/output.h"
#include "sim/search/search.h"
#include "sim/simulate/cost.h"
#include "sim/study/run.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::search::search_optimum_test {

study::LoadedStudy study_of(const std::string& cluster, const std::string& model,
                            const std::string& strategy, const std::string& use = "") {
  const TemporaryFolder folder;
  const auto file = folder.write("study.yaml", "cluster: " + cluster + "\nmodel: " + model +
                                                   "\nstrategy: " + strategy + "\n" +
                                                   (use.empty() ? "" : "use: " + use + "\n"));
  return value_of(study::load_study({.study = file, .sizes_matter = false}, shipped_options()));
}

// The step of a strategy, if it fits.
std::optional<Seconds> step_of(const study::LoadedStudy& study, const ClusterView& cluster,
                               const Strategy& strategy) {
  auto program = lower::lower(study.model, strategy, {});
  if (!program) return std::nullopt;
  const auto prediction = sim::simulate(
      cluster, study::with_launch_times(study.pool.placed(*std::move(program)), cluster),
      study.communication, {.critical_path = false, .reserve = reserve_of(strategy)});
  if (!prediction || !prediction->fits) return std::nullopt;
  return prediction->step;
}

// Two nodes of four devices each; 8 samples a step.
constexpr const char* kFits =
    "{name: fits, layers: 8, hidden: 2048, heads: 16, vocabulary: 32000, sequence: 1024}";
// Some 13 billion parameters, 18 bytes each: 240 GB on devices of 480 GB together.
constexpr const char* kTight =
    "{name: tight, layers: 16, hidden: 8192, heads: 64, vocabulary: 32000, sequence: 2048}";

// Routed experts, which ranks may share.
constexpr const char* kMixture =
    "{name: mixture, layers: 4, hidden: 1024, heads: 16, kv_heads: 8, vocabulary: 32000, sequence: "
    "1024, bias: false, activation: swiglu, positions: rotary, norm: rms-norm, tied_embeddings: "
    "false, dropout: false, experts: 8, experts_per_token: 2, expert_ffn: 1408}";
// Sequences that ranks may share.
constexpr const char* kLong =
    "{name: long, layers: 4, hidden: 1024, heads: 8, vocabulary: 32000, sequence: 32768, "
    "positions: "
    "rotary}";
// Layers that do not divide over the stages, before a large head.
constexpr const char* kHeavyHead =
    "{name: head, layers: 7, hidden: 2048, heads: 16, vocabulary: 256000, sequence: 1024, "
    "tied_embeddings: false}";

constexpr const char* kNode80 =
    "{device: A100-SXM-80GB, gpus: 4, nvlink: {bandwidth: 300 GB/s}, nics: {count: 1, bandwidth: "
    "200 Gbit/s}}";
constexpr const char* kNode40 =
    "{device: A100-SXM-40GB, gpus: 4, nvlink: {bandwidth: 300 GB/s}, nics: {count: 1, bandwidth: "
    "200 Gbit/s}}";
constexpr const char* kHost40 =
    "{name: one, node: {device: A100-SXM-40GB, gpus: 4, nvlink: {bandwidth: 300 GB/s}, nics: "
    "{count: 1, bandwidth: 200 Gbit/s}, cpu: {memory_bandwidth: 204.8 GB/s}}}";
constexpr const char* kNodeV100 =
    "{device: V100-SXM-32GB, gpus: 4, nvlink: {bandwidth: 150 GB/s}, nics: {count: 1, bandwidth: "
    "100 Gbit/s}}";
constexpr const char* kNodeH100 =
    "{device: H100-SXM, gpus: 4, nvlink: {bandwidth: 450 GB/s}, nics: {count: 1, bandwidth: 400 "
    "Gbit/s}}";

std::string two(const char* first, const char* second, const std::string& rest = "") {
  return std::string("{name: two, groups: [{node: ") + first + "}, {node: " + second +
         "}], fabric: {kind: single-switch}" + rest + "}";
}

struct Case {
  const char* name;
  std::string cluster;
  const char* model;
  /// What else a study may `use` of it: nodes of one kind, nodes that have lost nothing.
  std::vector<const char*> parts = {};
  std::int64_t level = 3;
};

class SearchOptimum : public testing::TestWithParam<Case> {};

// With enough simulations the search is certain, and what it found is what simulating every
// combination of the space finds: none was dropped that fits, no lower bound was too high.
TEST_P(SearchOptimum, IsThatOfEveryStrategySimulated) {
  constexpr const char* kStrategy = "{global_batch: 8, framework: megatron-lm}";
  const Case& of = GetParam();
  SearchSpace space{.level = of.level};
  space.recompute = {Recompute::kNone, Recompute::kSelective};
  space.rank_order = {{"tensor", "data", "pipeline"}, {"tensor", "pipeline", "data"}};
  const study::LoadedStudy study = study_of(of.cluster, of.model, kStrategy);
  const auto found = value_of(
      run_search(study, {.space = space, .simulate = 4, .certify = 100'000, .threads = 2}));
  EXPECT_TRUE(found.certified);
  ASSERT_FALSE(found.simulated.empty());
  ASSERT_TRUE(found.simulated.front().fits);

  std::optional<Seconds> best;
  std::int64_t considered = 0;
  std::vector<const char*> uses = of.parts;
  uses.push_back("");
  for (const char* use : uses) {
    const study::LoadedStudy one = study_of(of.cluster, of.model, kStrategy, use);
    const auto view = value_of(cluster_of(one, one.pool.devices));
    const sim::SimulatedCost cost(view, one.communication);
    Estimator estimator(one.model, view, one.pool.devices, cost);
    Cutter cutter(one.model, estimator);
    for (const Strategy& uncut : enumerate(space, one.strategy, one.model, one.pool.size(),
                                           parts_of({.pool = one.pool, .use = {}}, view))
                                     .candidates) {
      for (const Strategy& strategy : cutter.with_cuts(uncut, one.pool.size())) {
        ++considered;
        const auto step = step_of(one, view, strategy);
        if (step && (!best || *step < *best)) best = step;
      }
    }
  }
  ASSERT_TRUE(best);
  EXPECT_GE(considered, 50);
  EXPECT_EQ(found.simulated.front().step, *best);
  RecordProperty("simulated", std::to_string(found.simulated.size()));
  RecordProperty("of", std::to_string(considered));
}

INSTANTIATE_TEST_SUITE_P(
    Clusters, SearchOptimum,
    testing::Values(
        Case{"unequal_memory", two(kNode80, kNode40), kTight, {"[node0]", "[node1]"}},
        Case{"unequal_speed", two(kNodeH100, kNode80), kFits, {"[node0]", "[node1]"}},
        Case{"slow_nodes_best_left_idle", two(kNodeV100, kNodeH100), kFits, {"[node0]", "[node1]"}},
        Case{"a_dead_device", two(kNode80, kNode80, ", down: [node1/gpu2]"), kFits, {"[node0]"}},
        Case{"a_dead_nic", two(kNode80, kNode80, ", down: [node0/nic0]"), kFits, {"[node1]"}},
        Case{"a_mix",
             two(kNode80, kNodeH100,
                 ", down: [node0/gpu0], degraded: [{devices: node1/gpu1, speed: 0.6}]"),
             kFits,
             {"[node0]", "[node1]"}},
        Case{"a_slow_link",
             two(kNode80, kNode80, ", degraded: [{links: 'node1/nic0', factor: 0.1}]"),
             kFits,
             {"[node0]"}},
        Case{"experts", two(kNode80, kNode80), kMixture, {}, 2},
        Case{"sequences_that_are_shared", two(kNodeH100, kNodeH100), kLong, {}, 2},
        Case{"layers_that_do_not_divide",
             two(kNode80, kNodeH100),
             kHeavyHead,
             {"[node0]", "[node1]"},
             2}),
    [](const auto& of) { return std::string(of.param.name); });

// 240 GB of parameters and states on four devices of 40 GB: nothing fits without their hosts. What
// is found is the fastest of all ways to offload that fit, each with every number of layers.
TEST(Search, OffloadsTheLeastThatFits) {
  const study::LoadedStudy study =
      study_of(kHost40, kTight, "{global_batch: 8, framework: megatron-lm}");
  SearchSpace space{.tensor_parallel = {2, 4},
                    .pipeline_parallel = {1, 2},
                    .micro_batch = {1},
                    .virtual_stages = {1},
                    .zero_stage = {1},
                    .recompute = {Recompute::kNone}};
  space.uneven = false;
  SearchOptions options{.space = space, .certify = 1000, .front = 0};
  options.space.offload = false;
  const auto without = value_of(run_search(study, options));
  EXPECT_FALSE(without.has_answer());
  EXPECT_FALSE(without.tried_hosts);
  options.space.offload = true;
  const auto found = value_of(run_search(study, options));
  ASSERT_FALSE(found.simulated.empty());
  const Simulated& best = found.simulated.front();
  ASSERT_TRUE(best.fits);
  EXPECT_TRUE(best.strategy.offloads());
  EXPECT_TRUE(found.certified);
  EXPECT_THAT(search_csv(found, 1), HasSubstr("offload"));

  const auto cluster = value_of(cluster_of(study, study.pool.devices));
  std::optional<Seconds> least;
  for (const Strategy& plain :
       enumerate(space, study.strategy, study.model, study.pool.size()).candidates) {
    for (const auto optimizer :
         {OptimizerOffload::kNone, OptimizerOffload::kFetch, OptimizerOffload::kCpu}) {
      for (std::int64_t layers = 0; layers <= study.model.layers; ++layers) {
        Strategy one = plain;
        one.offload_optimizer = optimizer;
        one.offload_activation_layers = layers;
        if (!faults_in(one, study.model, study.pool.size()).empty()) continue;
        const auto step = step_of(study, cluster, one);
        if (step && (!least || *step < *least)) least = step;
      }
    }
  }
  ASSERT_TRUE(least);
  EXPECT_DOUBLE_EQ(best.step / 1_s, *least / 1_s) << in_words(best.strategy);

  options.space.offload = {};  // unasked, it finds the same, and says why
  const auto unasked = value_of(run_search(study, options));
  EXPECT_TRUE(unasked.needs_hosts());
  EXPECT_FALSE(found.needs_hosts());
  EXPECT_TRUE(unasked.certified);
  EXPECT_EQ(unasked.simulated.front().step, best.step);
  EXPECT_EQ(knobs_of(unasked.simulated.front().strategy), knobs_of(best.strategy));
  EXPECT_THAT(search_text(study, unasked, 1),
              HasSubstr("Nothing fits without the memory of hosts."));
  EXPECT_THAT(search_json(study, unasked, 1), HasSubstr("\"needs_hosts\": true"));
  std::int64_t misfits = 0;
  for (const auto& [key, count] : unasked.misfits) misfits += count;
  EXPECT_EQ(unasked.considered,
            misfits + unasked.too_large + unasked.slower + std::ssize(unasked.simulated));
}

// At every level, of families too; on hosts that do not say how fast their memory is, nothing is
// known.
TEST(Search, OffloadsUnaskedWhereNothingElseFits) {
  constexpr const char* kStrategy = "{global_batch: 8, framework: megatron-lm}";
  const study::LoadedStudy study = study_of(kHost40, kTight, kStrategy);
  SearchOptions options{.simulate = 4, .certify = 0, .front = 0};
  for (options.space.level = 0; options.space.level <= kEverything; ++options.space.level) {
    const auto found = value_of(run_search(study, options));
    ASSERT_TRUE(found.needs_hosts()) << options.space.level;
    EXPECT_TRUE(found.simulated.front().strategy.offloads());
    EXPECT_FALSE(found.nearest);
  }
  options.space.level = 1;
  const study::LoadedStudy silent =
      study_of("{name: silent, node: " + std::string(kNode40) + "}", kTight, kStrategy);
  const auto unknown = value_of(run_search(silent, options));
  EXPECT_FALSE(unknown.has_answer());
  EXPECT_TRUE(unknown.nearest);
  EXPECT_EQ(unknown.unroutable, 0);
  const std::string text = search_text(silent, unknown, 1);
  EXPECT_THAT(text, HasSubstr("Nothing fits. The one that misses least needs"));
  EXPECT_THAT(text, HasSubstr("is not known: work on the CPU beside node0/gpu0"));
}

// Where something fits, nothing more is looked at; where nothing does even so (a layer takes 400
// GB), that is said.
TEST(Search, OffloadsNothingUnaskedElsewhere) {
  constexpr const char* kStrategy = "{global_batch: 8, framework: megatron-lm}";
  SearchOptions options{.simulate = 4, .certify = 0, .front = 0};
  options.space.level = 1;
  const study::LoadedStudy fits = study_of(kHost40, kFits, kStrategy);
  const auto found = run_search(fits, options);
  SearchOptions never = options;
  never.space.offload = false;
  const auto without = run_search(fits, never);
  ASSERT_TRUE(found && without);
  EXPECT_FALSE(found->tried_hosts);
  EXPECT_EQ(found->considered, without->considered);
  EXPECT_EQ(search_csv(*found, 10), search_csv(*without, 10));

  const study::LoadedStudy huge = study_of(
      kHost40,
      "{name: huge, layers: 8, hidden: 131072, heads: 1024, vocabulary: 51200, sequence: 2048}",
      kStrategy);
  const auto nothing = value_of(run_search(huge, options));
  EXPECT_TRUE(nothing.tried_hosts);
  EXPECT_FALSE(nothing.needs_hosts());
  EXPECT_TRUE(nothing.nearest);
  EXPECT_THAT(search_text(huge, nothing, 1), HasSubstr("on hosts nothing fits either"));
}

// Where estimates took all the time that they may, what they found is simulated in what is left.
TEST(Search, SimulatesWhatEstimatesFoundInTime) {
  const study::LoadedStudy study =
      study_of(kHost40, kFits, "{global_batch: 8, framework: megatron-lm}");
  const auto cluster = value_of(cluster_of(study, study.pool.devices));
  const DeviceSubset place{.pool = study.pool, .use = {}};
  Strategy strategy = study.strategy;
  strategy.tensor_parallel = study.pool.size();
  std::vector<Candidate> candidates;
  for (const double step : {2.0, 1.0, 3.0})
    candidates.push_back({strategy,
                          {.step = step * 1_s, .bound = {}, .peak = 1_GiB, .memory = 2_GiB},
                          &place,
                          std::ssize(candidates)});
  const SearchOptions options{.simulate = 3, .certify = 0, .front = 0};
  const Deadline deadline(options);
  Simulations simulations(study, options, deadline);
  SearchResult result;
  result.partial = true;
  EXPECT_TRUE(race(study, cluster, options, candidates, {}, deadline, simulations, result).empty());
  EXPECT_EQ(result.simulated.size(), 3U);
  EXPECT_TRUE(result.partial);
}

// Devices with a hundredth more memory than the only strategy needs, of which a simulation is said
// to have needed more than there is: its estimate is not trusted to the last byte.
TEST(Search, OffloadsMoreWhereSimulationsNeedMoreThanEstimates) {
  const auto study_with = [](const std::string& memory) {
    return study_of(
        "{name: one, node: {device: {extends: A100-SXM-40GB, name: cut, memory: {value: " + memory +
            ", source: a test, evidence: user}}, gpus: 4, nvlink: {bandwidth: 300 GB/s}, nics: "
            "{count: 1, bandwidth: 200 Gbit/s}, cpu: {memory_bandwidth: 204.8 GB/s}}}",
        kFits, "{global_batch: 8, framework: megatron-lm}");
  };
  SearchOptions options{.simulate = 4, .certify = 0, .front = 0};
  options.space = {.tensor_parallel = {2},
                   .pipeline_parallel = {2},
                   .micro_batch = {2},
                   .virtual_stages = {1},
                   .zero_stage = {0},
                   .recompute = {Recompute::kNone}};
  options.space.uneven = false;
  const auto roomy = value_of(run_search(study_with("40 GiB"), options));
  ASSERT_EQ(roomy.simulated.size(), 1U);
  const Simulated& only = roomy.simulated.front();
  const Bytes memory = 1.01 * only.peak + reserve_of(only.strategy);
  const auto study = study_with(std::to_string(std::llround(memory / 1_B)) + " B");
  const auto found = run_search(study, options);
  ASSERT_TRUE(found && found->has_answer());
  EXPECT_FALSE(found->tried_hosts);

  SearchResult result = *found;
  result.simulated.front().fits = false;
  const auto cluster = value_of(cluster_of(study, study.pool.devices));
  const auto places = value_of(device_subsets_of(study, cluster));
  const Deadline deadline(options);
  Simulations simulations(study, options, deadline);
  race_on_hosts(study, cluster, places, options, {}, deadline, simulations, result);
  ASSERT_TRUE(result.needs_hosts());
  const Simulated& best = result.simulated.front();
  EXPECT_TRUE(best.strategy.offloads());
  EXPECT_LE(best.estimate.peak * (1 + kMemoryError), best.estimate.memory);
  EXPECT_FALSE(result.simulated.back().strategy.offloads());
}

// Two nodes that differ in their hosts alone: what small kernels wait for is left idle, though its
// devices come first.
TEST(Search, LeavesNodesWithSlowHostsIdle) {
  const study::LoadedStudy study = study_of(
      "{name: hosts, groups: [{node: {extends: dgx-h100, host: {speed: {value: 0.02, source: test, "
      "evidence: user}}}}, {node: dgx-h100}], fabric: {kind: single-switch}}",
      kFits, "{global_batch: 64, framework: megatron-lm}");
  SearchOptions options{.simulate = 8, .certify = 0, .front = 0};
  options.space.level = 1;
  const auto found = value_of(run_search(study, options));
  EXPECT_EQ(found.simulated.front().use, std::vector<std::string>{"node1"});
}

// A study that offloads is searched as it is.
TEST(Search, KeepsWhatAStudyOffloads) {
  const study::LoadedStudy study =
      study_of(kHost40, kFits, "{global_batch: 8, framework: megatron-lm, offload_optimizer: cpu}");
  const auto found = value_of(run_search(study, {.simulate = 4, .certify = 0, .front = 0}));
  ASSERT_FALSE(found.simulated.empty());
  for (const Simulated& one : found.simulated)
    EXPECT_EQ(one.strategy.offload_optimizer, OptimizerOffload::kCpu);
}

// Stage 0 needs some 44 GiB, more than the second node's devices have, and runs on the first; stage
// 1 needs some 37.
TEST(Search, HoldsEachStageToTheMemoryOfItsOwnDevices) {
  const study::LoadedStudy study = study_of(
      "{name: both, groups: [{node: dgx-a100-80gb}, {node: dgx-a100-40gb}], fabric: {kind: "
      "single-switch}}",
      "{extends: llama2-70b, layers: 30}", "{global_batch: 16, framework: megatron-lm}");
  SearchSpace space{.micro_batch = {4}, .virtual_stages = {1}};
  space.tensor_parallel = {8};
  space.pipeline_parallel = {2};
  space.uneven = false;
  space.recompute = {Recompute::kNone};
  const auto found = value_of(run_search(study, {.space = space}));
  ASSERT_EQ(found.simulated.size(), 1U);
  const Simulated& one = found.simulated.front();
  EXPECT_TRUE(one.fits);
  const auto cluster = value_of(cluster_of(study, study.pool.devices));
  EXPECT_EQ(one.step, step_of(study, cluster, one.strategy));
}

TEST(Search, SaysWhichDevicesAreLeftOver) {
  const study::LoadedStudy study =
      study_of(two(kNode80, kNode80, ", down: [node1/gpu2]"), kFits, "{global_batch: 8}");
  SearchSpace space;
  space.tensor_parallel = {4};
  space.pipeline_parallel = {1};
  const auto found = value_of(run_search(study, {.space = space, .simulate = 2, .certify = 0}));
  EXPECT_EQ(found.devices, 7);
  EXPECT_EQ(found.most_devices, 4);
  EXPECT_EQ(found.shortage, "node1/gpu2 is down");
  EXPECT_EQ(found.simulated.front().idle, 3);
}

// With only the second node's devices whole, groups of 4 straddle the nodes unless they are on it:
// as fast as it is alone.
TEST(Search, TriesTheNodesThatLostNothingAlone) {
  const auto best = [](const std::string& use) {
    const study::LoadedStudy study =
        study_of(two(kNode80, kNode80, ", down: [node0/gpu2]"), kFits, "{global_batch: 8}", use);
    SearchSpace space;
    space.tensor_parallel = {4};
    return value_of(run_search(study, {.space = space, .simulate = 100})).simulated.front();
  };
  const Simulated found = best("");
  EXPECT_EQ(found.use.front(), "node1");
  EXPECT_EQ(found.step, best("[node1]").step);
}

// One H100 takes a fifth of a V100's time: all eight devices wait for the slow ones, and four of
// the fast ones alone are some four times as fast. They come second in the cluster.
TEST(Search, LeavesSlowNodesIdleWhereThatIsFaster) {
  constexpr const char* kStrategy = "{global_batch: 8, precision: fp16}";
  const study::LoadedStudy study = study_of(two(kNodeV100, kNodeH100), kFits, kStrategy);
  const study::LoadedStudy both =
      study_of(two(kNodeV100, kNodeH100), kFits, kStrategy, "[node0, node1]");
  SearchSpace all;
  all.idle = false;
  all.uneven = false;
  const auto whole = run_search(both, {.space = all, .simulate = 20});
  const auto found = run_search(study, {.simulate = 20});
  ASSERT_TRUE(whole && found);
  const Simulated& best = found->simulated.front();
  EXPECT_EQ(best.use, std::vector<std::string>{"node1"});
  EXPECT_EQ(best.idle, 4);
  const double gain = whole->simulated.front().step / best.step;
  RecordProperty("gain", std::to_string(gain));
  EXPECT_GT(gain, 3);
  EXPECT_THAT(search_text(study, *found, 1, {.width = 1000}),
              HasSubstr(", 4 devices idle, use: [node1]"));
}

// 100 Mbit/s between two nodes: one of them alone is faster than both.
TEST(Search, LeavesANodeIdleBesideASlowNetwork) {
  const std::string node =
      "{device: A100-SXM-80GB, gpus: 4, nvlink: {bandwidth: 300 GB/s}, nics: {count: 1, bandwidth: "
      "100 Mbit/s}}";
  const study::LoadedStudy study = study_of(
      "{nodes: 2, node: " + node + ", fabric: {kind: single-switch}}", kFits, "{global_batch: 8}");
  const auto found = value_of(run_search(study, {.simulate = 20}));
  EXPECT_EQ(found.simulated.front().idle, 4);
  EXPECT_TRUE(found.simulated.front().use.empty());
}

// 16 billion parameters, 18 bytes each, need two nodes of 320 GB, and no way leads from one to the
// other.
TEST(Search, NamesAMissingRouteBeforeMissingMemory) {
  const study::LoadedStudy study = study_of(
      two(kNode80, kNode80, ", down: ['node1/nic*']"),
      "{name: wide, layers: 20, hidden: 8192, heads: 64, vocabulary: 32000, sequence: 2048}",
      "{global_batch: 8, framework: megatron-lm}");
  SearchSpace space;
  space.zero_stage = {0};
  space.recompute = {Recompute::kNone};
  space.micro_batch = {8};
  space.offload = false;
  const auto found = value_of(run_search(study, {.space = space}));
  ASSERT_GT(found.unroutable, 0);
  const std::string text = search_text(study, found, 1);
  EXPECT_THAT(text, HasSubstr(" cannot run: "));
  EXPECT_THAT(text, HasSubstr("Of the others, nothing fits."));
  EXPECT_LT(text.find(" cannot run: "), text.find("nothing fits"));
}

}  // namespace foreshard::search::search_optimum_test
