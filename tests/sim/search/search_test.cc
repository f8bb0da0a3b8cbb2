#include "sim/search/search.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "base/quantity.h"
#include "tests/base/temporary_folder.h"

#include "sim/search/internal/ranking.h"
#include "sim/search/output.h"
#include "sim/search/place.h"
#include "sim/simulate/cost.h"
#include "sim/study/run.h"
#include "strategies/program/lower/exchanges.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::search {
namespace search_test {

using testing::HasSubstr;

study::LoadedStudy study_of(const std::string& cluster, const std::string& framework,
                            const std::string& model) {
  const TemporaryFolder folder;
  const auto file =
      folder.write("study.yaml", "cluster: " + cluster + "\nmodel: " + model +
                                     "\nstrategy: {global_batch: 64, data_parallel: " +
                                     (cluster.find("two") == std::string::npos ? "8" : "16") +
                                     ", framework: " + framework + "}\n");
  auto study = study::load_study(
      {.study = file},
      yaml::Options{.catalogue = {FORESHARD_SOURCE_DIR "/configs"}, .overrides = {}});
  if (!study) throw std::runtime_error(study.error().message);
  return *std::move(study);
}

constexpr const char* kBox = "{name: box, node: dgx-a100-80gb}";
// Hosts of speed 1, and Megatron Core as if nothing but 31 us a kernel were its own: small models
// do not wait for them.
constexpr const char* kQuickBox =
    "{name: box, node: {extends: dgx-a100-80gb, host: {speed: {value: 1, source: test, evidence: "
    "user}}}}";
constexpr const char* kTwo =
    "{extends: two-dgx-a100, node: {extends: dgx-a100-80gb, host: {speed: {value: 1, source: test, "
    "evidence: user}}}}";
constexpr const char* kMegatron =
    "{extends: megatron-lm, host_time: 31 us, product_launches: 1, quantized_product_launches: 1, "
    "eager_launches: 1, expert_product_time: 8.8 us, pipeline_host_sync: false}";
constexpr const char* kSmall =
    "{name: small, layers: 8, hidden: 2048, heads: 16, vocabulary: 32000, sequence: 1024}";
constexpr const char* kExperts =
    "{name: mixture, layers: 8, hidden: 2048, heads: 16, kv_heads: 8, vocabulary: 32000, sequence: "
    "1024, bias: false, activation: swiglu, positions: rotary, norm: rms-norm, tied_embeddings: "
    "false, dropout: false, experts: 8, experts_per_token: 2, expert_ffn: 2816, shared_ffn: 1024, "
    "dense_layers: 2, ffn: 8192}";
constexpr const char* kPrediction =
    "{name: predicting, layers: 8, hidden: 2048, heads: 16, vocabulary: 32000, sequence: 1024, "
    "positions: rotary, multi_token_prediction: 1, tied_embeddings: false}";
constexpr const char* kTiedPredictions =
    "{name: predicting, layers: 8, hidden: 2048, heads: 16, vocabulary: 32000, sequence: 1024, "
    "positions: rotary, multi_token_prediction: 2}";
constexpr const char* kAdapters =
    "{name: adapted, layers: 8, hidden: 2048, heads: 16, vocabulary: 32000, sequence: 1024, "
    "dropout: false, adapters: {rank: 16}}";
constexpr const char* kFrozen =
    "{name: frozen, layers: 8, hidden: 2048, heads: 16, vocabulary: 32000, sequence: 1024, "
    "tied_embeddings: false, frozen: {embedding: true, layers: 2}}";
constexpr const char* kHuge =
    "{name: huge, layers: 96, hidden: 16384, heads: 128, vocabulary: 51200, sequence: 2048}";

struct Case {
  const char* name;
  const char* cluster;
  const char* framework;
  double memory_error = 0.01;
  const char* model = kSmall;
  std::vector<std::int64_t> context_parallel = {};
  std::vector<TokenDispatcher> token_dispatcher = {};
  bool offloads = false;
  double highest = 1.25;  ///< Estimate over simulation.
};

// Of every third pipeline, a schedule that the search does not try.
void reschedule(Strategy& strategy, std::size_t i) {
  if (strategy.pipeline_parallel == 1 || i % 3 != 0) return;
  constexpr std::array kOneChunk{"zb-h1", "zb-h2", "zb-1p", "zb-2p"};
  constexpr std::array kTwoChunks{"zb-v", "v-half", "breadth-first"};
  if (strategy.virtual_stages == 1) strategy.schedule = kOneChunk[i / 3 % kOneChunk.size()];
  if (strategy.virtual_stages == 2) strategy.schedule = kTwoChunks[i / 3 % kTwoChunks.size()];
}

// Of every fifth pipeline, unequal stages; of every seventh strategy that recomputes whole layers,
// one layer of each stage alone.
void vary(Strategy& strategy, const Model& model, std::size_t i) {
  if (i % 5 == 0 && strategy.pipeline_parallel > 1) {
    auto cut = layers_of_stages(strategy, model.layers);
    if (cut.front() > 1) {
      --cut.front();
      ++cut.back();
      strategy.layers_per_stage = cut;
    }
  }
  const bool is_alike = model.layer_kinds(strategy.unquantized_layers).size() == 1;
  const auto cut = layers_of_stages(strategy, model.layers);
  if (i % 7 < 2 && is_alike && strategy.recompute == Recompute::kFull &&
      *std::ranges::max_element(cut) > 1)
    strategy.recompute_layers = 1;
}

// The i-th way to use the memory of the hosts, where the strategy can.
void offload(Strategy& strategy, const Model& model, std::size_t i) {
  const auto keep_if_sound = [&](const auto& change) {
    const Strategy before = strategy;
    change();
    if (!faults_in(strategy, model, strategy.devices()).empty()) strategy = before;
  };
  keep_if_sound([&] { strategy.offload_activation_layers = static_cast<std::int64_t>(i % 4); });
  if (i % 3 > 0)
    keep_if_sound([&] {
      strategy.offload_optimizer = i % 3 == 1 ? OptimizerOffload::kCpu : OptimizerOffload::kFetch;
    });
  if (i % 2 == 0)
    keep_if_sound([&] {
      strategy.offload_optimizer = OptimizerOffload::kCpu;
      strategy.offload_parameters = true;
    });
}

class EstimateOfRandomStrategies : public testing::TestWithParam<Case> {};

// Up to 200 strategies drawn from everything that the space holds. The bound never exceeds the
// simulation; the estimate is within the interval below of it (it knows nothing of SMs that
// communication takes and of links that groups share), memory within 1 %. Where devices wait for
// their host, gathered parameters are freed before the next are asked for; the estimate counts
// both, and is up to 2 % high. So it is where experts are gathered behind all else of a layer (2.1
// % where tokens travel by DeepEP); of two modules that predict more tokens it is 1.4 % low for one
// strategy of 200. Where parameters come from the host, whole gradients wait behind them: memory is
// up to 7 % low. Hosts launch ahead in the bubbles of a pipeline, where the estimate lets each pass
// wait for its own launches: it is up to 40 % high here of small models whose hosts bind.
TEST_P(EstimateOfRandomStrategies, AgreesWithTheSimulation) {
  const study::LoadedStudy study =
      study_of(GetParam().cluster, GetParam().framework, GetParam().model);
  const auto cluster = cluster_of(study);
  ASSERT_TRUE(cluster) << cluster.error().message;
  const auto parts = parts_of({.pool = study.pool, .use = {}}, *cluster);
  auto space = enumerate({.level = 3,
                          .context_parallel = GetParam().context_parallel,
                          .token_dispatcher = GetParam().token_dispatcher},
                         study.strategy, study.model,
                         static_cast<std::int64_t>(cluster->devices().size()), parts);
  constexpr std::uint32_t kSeed = 20240607;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::ranges::shuffle(space.candidates, std::mt19937(kSeed));  // NOLINT: repeatable on purpose
  ASSERT_GE(space.candidates.size(), 50U);
  space.candidates.resize(std::min<std::size_t>(space.candidates.size(), 200), study.strategy);
  for (std::size_t i = 0; i < space.candidates.size(); ++i) {
    reschedule(space.candidates[i], i);
    vary(space.candidates[i], study.model, i);
    if (GetParam().offloads) offload(space.candidates[i], study.model, i);
  }

  const sim::SimulatedCost cost(*cluster, study.communication, lower::routing_of(study.model));
  Estimator estimator(study.model, *cluster, study.pool.devices, cost);
  double lowest = 1;
  double highest = 1;
  for (const Strategy& strategy : space.candidates) {
    SCOPED_TRACE(describe(strategy));
    const auto estimate = estimator.estimate(strategy);
    ASSERT_TRUE(estimate) << estimate.error().message;
    auto program = lower::lower(study.model, strategy, {});
    ASSERT_TRUE(program) << program.error().message;
    const auto simulated =
        sim::simulate(*cluster, study::with_launch_times(*std::move(program), *cluster),
                      study.communication, {.critical_path = false});
    ASSERT_TRUE(simulated) << simulated.error().message;
    EXPECT_LE(estimate->bound / simulated->step, 1 + 1e-9);
    lowest = std::min(lowest, estimate->step / simulated->step);
    highest = std::max(highest, estimate->step / simulated->step);
    const auto worst = static_cast<std::size_t>(simulated->worst_memory);
    const double memory = estimate->peak / simulated->classes[worst].memory.peak;
    EXPECT_LE(estimate->least, estimate->peak / estimate->memory);
    if (strategy.offload_activation_layers == 0) {
      EXPECT_LE(least_need(*estimate, strategy, study.model),
                simulated->classes[worst].memory.peak / estimate->memory);
    }
    EXPECT_GE(memory, 1 - GetParam().memory_error);
    // How soon copies to the host end is not in the plan: what may be on its way counts.
    EXPECT_LE(memory, 1 + (strategy.offload_activation_layers > 0 ? 0.4 : GetParam().memory_error));
  }
  RecordProperty("lowest_ratio", std::to_string(lowest));
  RecordProperty("highest_ratio", std::to_string(highest));
  EXPECT_GE(lowest, 0.80);
  EXPECT_LE(highest, GetParam().highest);
}

// Where a host is late, tasks that would run beside a pass may be over before it begins.
TEST(Estimator, KnowsTheLeastMemoryWhereNoHostIsLate) {
  const auto least_share = [](const std::string& host_time) {
    study::LoadedStudy study =
        study_of(kTwo, "{extends: megatron-lm, host_time: " + host_time + "}", kHuge);
    study.strategy.tensor_parallel = 8;
    study.strategy.data_parallel = 2;
    const ClusterView cluster = *cluster_of(study);
    const sim::SimulatedCost cost(cluster, study.communication);
    Estimator estimator(study.model, cluster, study.pool.devices, cost);
    const auto estimate = estimator.estimate(study.strategy);
    EXPECT_TRUE(estimate);
    return estimate->least * estimate->memory / estimate->peak;
  };
  EXPECT_DOUBLE_EQ(least_share("0 us"), 1);
  EXPECT_DOUBLE_EQ(least_share("50 us"), 1);
  EXPECT_LT(least_share("1 s"), 1);
}

// Stages of two nodes that differ in their hosts alone, two micro-batches in flight: each takes
// what it takes where both nodes are like its own.
TEST(Estimator, LaunchesEachStageByItsOwnHosts) {
  const auto node = [](const char* speed) {
    return std::string("{node: {extends: dgx-h100, host: {speed: {value: ") + speed +
           ", source: test, evidence: user}}}}";
  };
  const auto times_on = [&](const std::string& first, const std::string& second) {
    study::LoadedStudy study = study_of(
        "{name: two-hosts, groups: [" + first + ", " + second + "], fabric: {kind: single-switch}}",
        "megatron-lm", kSmall);
    study.strategy.tensor_parallel = 8;
    study.strategy.pipeline_parallel = 2;
    study.strategy.data_parallel = 1;
    const ClusterView cluster = *cluster_of(study);
    const sim::SimulatedCost cost(cluster, study.communication);
    Estimator estimator(study.model, cluster, study.pool.devices, cost);
    const Estimate estimate = *estimator.estimate(study.strategy);
    return std::pair(*estimator.unit_times(study.strategy), estimate.step);
  };
  const auto [mixed, mixed_step] = times_on(node("0.02"), node("1"));
  const auto [slow, slow_step] = times_on(node("0.02"), node("0.02"));
  const auto [fast, fast_step] = times_on(node("1"), node("1"));
  EXPECT_EQ(mixed[0], slow[0]);
  EXPECT_EQ(mixed[1], fast[1]);
  EXPECT_GT(slow[0][1], 10 * fast[0][1]);
  EXPECT_LT(mixed_step, slow_step);
  EXPECT_GT(mixed_step, fast_step);
}

// All strategies of a level, as a search ranks them, beside the walks of another estimator: the
// paths of few strategies of a form stand for those of all others.
TEST(Ranking, IsNearlyThatOfEstimates) {
  const study::LoadedStudy study = study_of("two-dgx-a100", "megatron-lm", kSmall);
  const auto cluster = cluster_of(study);
  ASSERT_TRUE(cluster) << cluster.error().message;
  const auto space = enumerate({.level = 3}, study.strategy, study.model, study.pool.size());
  const sim::SimulatedCost cost(*cluster, study.communication);
  Estimator ranking(study.model, *cluster, study.pool.devices, cost);
  Estimator walking(study.model, *cluster, study.pool.devices, cost);
  std::vector<double> errors;
  for (const Strategy& strategy : space.candidates) {
    const auto ranked = ranking.rank(strategy);
    const auto walked = walking.estimate(strategy);
    ASSERT_TRUE(ranked && walked) << describe(strategy);
    EXPECT_EQ(ranked->peak, walked->peak);
    EXPECT_EQ(ranked->bound, walked->bound);
    errors.push_back(std::abs(ranked->step / walked->step - 1));
  }
  ASSERT_GE(errors.size(), 1000U);
  std::ranges::sort(errors);
  const auto quantile = [&](double q) {
    return errors[static_cast<std::size_t>(q * static_cast<double>(errors.size() - 1))];
  };
  RecordProperty("most", std::to_string(errors.back()));
  EXPECT_LE(quantile(0.5), 1e-12);
  EXPECT_LE(quantile(0.99), 0.01);
  EXPECT_LE(errors.back(), 0.1);
}

INSTANTIATE_TEST_SUITE_P(
    Frameworks, EstimateOfRandomStrategies,
    testing::Values(
        Case{"a_node_megatron", kQuickBox, kMegatron},
        Case{"a_node_megatron_sc21", kBox, "megatron-lm-sc21"},
        Case{"two_nodes_megatron", kTwo, kMegatron}, Case{"two_nodes_fsdp", kTwo, "pytorch-fsdp"},
        Case{"two_nodes_megatron_experts", kTwo, kMegatron, 0.02, kExperts},
        Case{"two_nodes_fsdp_experts", kTwo, "pytorch-fsdp", 0.01, kExperts},
        Case{"two_nodes_megatron_experts_by_deepep",
             kTwo,
             kMegatron,
             0.02,
             kExperts,
             {},
             {TokenDispatcher::kDeepEp}},
        Case{"two_nodes_fsdp_experts_by_deepep",
             kTwo,
             "pytorch-fsdp",
             0.025,
             kExperts,
             {},
             {TokenDispatcher::kDeepEp}},
        Case{"two_nodes_megatron_prediction", kTwo, kMegatron, 0.01, kPrediction},
        Case{"two_nodes_fsdp_predictions", kTwo, "pytorch-fsdp", 0.02, kTiedPredictions},
        Case{"two_nodes_megatron_context", kTwo, kMegatron, 0.01, kSmall, {1, 2, 4}},
        Case{"two_nodes_megatron_experts_and_context", kTwo, kMegatron, 0.02, kExperts, {2}},
        Case{"two_nodes_megatron_adapters", kTwo, kMegatron, 0.02, kAdapters},
        Case{"two_nodes_fsdp_adapters", kTwo, "pytorch-fsdp", 0.02, kAdapters},
        Case{"two_nodes_megatron_frozen", kTwo, kMegatron, 0.02, kFrozen},
        Case{"two_nodes_megatron_offloading", kTwo, kMegatron, 0.07, kSmall, {}, {}, true},
        Case{"two_nodes_fsdp_offloading", kTwo, "pytorch-fsdp", 0.07, kSmall, {}, {}, true},
        Case{"two_nodes_megatron_waiting_for_hosts",
             "two-dgx-a100",
             "megatron-lm",
             0.06,
             kSmall,
             {},
             {},
             false,
             1.4},
        Case{"two_nodes_nemo_waiting_for_hosts",
             "two-dgx-a100",
             "nemo",
             0.06,
             kSmall,
             {},
             {},
             false,
             1.4},
        Case{"two_nodes_internevo_waiting_for_hosts",
             "two-dgx-a100",
             "{extends: internevo, host_time: 200 us}",
             0.3,
             kSmall,
             {},
             {},
             false,
             1.6},
        Case{"two_nodes_llm_foundry", kTwo, "{extends: llm-foundry, host_time: 0 us}"},
        Case{"two_nodes_llm_foundry_waiting_for_hosts", "two-dgx-a100", "llm-foundry", 0.02},
        Case{"two_nodes_waiting_for_each_kernel", kTwo, "megatron-deepspeed-bloom"},
        Case{"two_nodes_torchtitan", kTwo, "torchtitan", 0.02},
        Case{"two_nodes_torchtitan_eager", kTwo, "torchtitan-eager", 0.02},
        Case{"two_nodes_deepspeed_zero3", kTwo, "deepspeed-zero3", 0.02},
        Case{"two_nodes_deepspeed_zero3_2021", kTwo, "deepspeed-zero3-2021", 0.02},
        Case{"two_nodes_internevo", kTwo, "internevo", 0.02},
        Case{"two_nodes_nanotron", kTwo, "nanotron", 0.02},
        Case{"two_nodes_paddlenlp", kTwo, "paddlenlp", 0.02},
        Case{"two_nodes_generic", kTwo, "generic", 0.02},
        Case{"two_nodes_nemo", kTwo, "{extends: nemo, host_time: 31 us, product_launches: 1}",
             0.02}),
    [](const auto& of) { return std::string(of.param.name); });

TEST(Search, NamesTheFastestOfWhatItSimulated) {
  const study::LoadedStudy study = study_of(kBox, "megatron-lm", kSmall);
  const auto result = run_search(study, {.simulate = 8, .certify = 0, .front = 0});
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->simulated.size(), 8U);
  EXPECT_TRUE(std::ranges::is_sorted(result->simulated, {}, &Simulated::step));
  EXPECT_GT(result->lowest_ratio, 0.8);
  EXPECT_LT(result->highest_ratio, 1.1);
  std::int64_t misfits = 0;
  for (const auto& [key, count] : result->misfits) misfits += count;
  EXPECT_EQ(result->considered, misfits + result->too_large + result->unroutable + result->slower +
                                    static_cast<std::int64_t>(result->simulated.size()));
  EXPECT_EQ(result->unroutable, 0);
}

// A certificate is a promise about all candidates: simulating every one must not beat the winner.
TEST(Search, CertifiedWinnersAreNotBeaten) {
  const study::LoadedStudy study = study_of(kBox, "megatron-lm", kSmall);
  SearchOptions options{.simulate = 4};
  options.space.level = 1;
  const auto some = run_search(study, options);
  options.simulate = 100'000;
  const auto all = run_search(study, options);
  ASSERT_TRUE(some && all);
  EXPECT_TRUE(all->certified);
  EXPECT_FALSE(all->best_bound);
  if (some->certified) {
    EXPECT_EQ(some->simulated.front().step, all->simulated.front().step);
  }
  EXPECT_LE(some->simulated.front().step * (1 - some->gap()), all->simulated.front().step);
}

// The layout that MoE Parallel Folding (arXiv 2504.14960, table 3) found for Mixtral 8x22B on 128
// H100: tensor 2, pipeline 8, experts 8 ways, each whole. It is in the space, and what the search
// names is as fast at least.
TEST(Search, FindsThePublishedLayoutOfAMixtureOrBeatsIt) {
  const auto study = study::load_study(
      {.study = "mixtral-8x22b-h100-128"},
      yaml::Options{.catalogue = {FORESHARD_SOURCE_DIR "/configs"}, .overrides = {}});
  ASSERT_TRUE(study) << study.error().message;
  SearchOptions options{.simulate = 4};
  options.space = {.tensor_parallel = {2, 4},
                   .pipeline_parallel = {8},
                   .micro_batch = {1},
                   .virtual_stages = {1, 7},
                   .zero_stage = {1},
                   .recompute = {Recompute::kNone}};
  const Strategy& published = study->strategy;
  const auto space = enumerate(options.space, published, study->model, study->pool.size());
  EXPECT_TRUE(std::ranges::any_of(
      space.candidates, [&](const Strategy& one) { return knobs_of(one) == knobs_of(published); }));
  const auto found = run_search(*study, options);
  ASSERT_TRUE(found) << found.error().message;
  const auto simulated = study::run_study(*study, {.critical_path = false});
  ASSERT_TRUE(simulated) << simulated.error().message;
  EXPECT_LE(found->simulated.front().step, simulated->prediction.step);
}

TEST(Search, SaysTheSameWithAnyNumberOfThreads) {
  const study::LoadedStudy study = study_of(kBox, "megatron-lm", kSmall);
  const auto one = run_search(study, {.simulate = 6, .threads = 1});
  const auto three = run_search(study, {.simulate = 6, .threads = 3});
  ASSERT_TRUE(one && three);
  EXPECT_EQ(search_json(study, *one, 10), search_json(study, *three, 10));
  EXPECT_EQ(search_csv(*one, 10), search_csv(*three, 10));
}

TEST(Search, TellsHowFarTheNearestIsFromFitting) {
  const study::LoadedStudy study = study_of(kBox, "megatron-lm", kHuge);
  const auto result = run_search(study, {.space = {.offload = false}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->simulated.empty());
  ASSERT_TRUE(result->nearest);
  EXPECT_GT(result->nearest->estimate.peak, result->nearest->estimate.memory);
  EXPECT_THAT(search_text(study, *result, 10),
              HasSubstr("Nothing fits. The one that misses least needs"));
  const auto json = nlohmann::json::parse(search_json(study, *result, 10));
  EXPECT_EQ(json["schema"], "foreshard.search/1");
  const auto& nearest = json["nearest"];
  EXPECT_GT(nearest["missing_bytes"], 0);
  EXPECT_EQ(nearest["missing_bytes"].get<std::int64_t>(),
            nearest["peak_bytes"].get<std::int64_t>() -
                nearest["capacity_bytes"].get<std::int64_t>() +
                nearest["reserve_bytes"].get<std::int64_t>());
  EXPECT_EQ(nearest["capacity_bytes"],
            std::llround(study.cluster.node_groups().front().node->device->memory.value.in_base()));
  EXPECT_TRUE(json["gap"].is_null());
  EXPECT_TRUE(json["certified_within"].is_null());
}

// By hand: 10 s (9 to 11) is the best; 10.5 s (10 to 12) reaches into its interval, 13 s (11.5 to
// 14) does not, and what does not fit does not count.
TEST(Search, SaysWhichIntervalsReachIntoThatOfTheBest) {
  const study::LoadedStudy study = study_of(kBox, "megatron-lm", kSmall);
  const auto one = [&](Seconds low, Seconds step, Seconds high, bool fits) {
    Simulated result;
    result.strategy = study.strategy;
    result.step = step;
    result.low = low;
    result.high = high;
    result.fits = fits;
    return result;
  };
  SearchResult result;
  result.simulated = {one(9_s, 10_s, 11_s, true), one(10_s, 10.5_s, 12_s, true),
                      one(11.5_s, 13_s, 14_s, true), one(8_s, 9_s, 10_s, false)};
  result.certified = true;
  EXPECT_EQ(result.overlapping(), 1);
  const std::string text = search_text(study, result, 3);
  EXPECT_THAT(text, HasSubstr("Certified within the model"));
  EXPECT_THAT(text, HasSubstr(format(9_s) + " to " + format(11_s)));
  EXPECT_THAT(text, HasSubstr("The intervals of the first ("));
  result.simulated.erase(result.simulated.begin() + 1);
  EXPECT_EQ(result.overlapping(), 0);
  EXPECT_THAT(search_text(study, result, 3), testing::Not(HasSubstr("The intervals of the first")));
}

// By hand: the second is 10 % slower; intervals of 0.9 to 1.1 have sigma = ln(1.1 / 0.9) / 2.5632 =
// 0.0783 each, 0.1107 together; ln(1.1) / 0.1107 = 0.861, of which the normal distribution is
// 0.805.
TEST(Search, SaysHowProbablyTheFirstBeatsTheSecond) {
  const study::LoadedStudy study = study_of(kBox, "megatron-lm", kSmall);
  Simulated one;
  one.strategy = study.strategy;
  one.step = 1_s;
  one.low = 0.9_s;
  one.high = 1.1_s;
  SearchResult result;
  EXPECT_FALSE(result.first_beats_second());
  result.simulated = {one, one};
  EXPECT_DOUBLE_EQ(result.first_beats_second().value_or(0), 0.5);
  result.simulated[1].step = 1.1_s;
  result.simulated[1].low = 0.99_s;
  result.simulated[1].high = 1.21_s;
  EXPECT_NEAR(result.first_beats_second().value_or(0), 0.805, 0.001);
}

// No member of the front is beaten in time, memory and money by any other that fits, and all others
// are.
TEST(Search, MarksTheFront) {
  const study::LoadedStudy study = study_of(kBox, "megatron-lm", kSmall);
  const auto result = run_search(study, {.simulate = 10, .certify = 4, .front = 8});
  ASSERT_TRUE(result) << result.error().message;
  const auto beats = [](const Simulated& a, const Simulated& b) {
    return a.step <= b.step && a.peak <= b.peak && a.money() <= b.money() &&
           (a.step < b.step || a.peak < b.peak || a.money() < b.money());
  };
  for (const Simulated& one : result->simulated)
    EXPECT_EQ(one.on_front, std::ranges::none_of(result->simulated, [&](const Simulated& other) {
                return beats(other, one);
              }));
  const auto least = std::ranges::min_element(result->simulated, {}, &Simulated::peak);
  EXPECT_LT(least->peak, result->simulated.front().peak);
}

TEST(Search, RanksTheBestAgainWithOtherNumbers) {
  const study::LoadedStudy study = study_of("two-dgx-a100", "megatron-lm", kSmall);
  const auto result = run_search(study, {.simulate = 6, .certify = 0});
  ASSERT_TRUE(result) << result.error().message;
  const Robustness& of = result->robustness;
  EXPECT_EQ(of.draws, kDraws);
  ASSERT_EQ(std::ssize(of.firsts), kContenders);
  EXPECT_EQ(std::accumulate(of.firsts.begin(), of.firsts.end(), std::int64_t{0}), kDraws);
  EXPECT_LT(of.beside_slow, kContenders);
  Robustness lost{.draws = 10, .firsts = {4, 6}};
  EXPECT_FALSE(lost.holds());
  lost.firsts = {5, 5};
  EXPECT_TRUE(lost.holds());
}

// Each of what can rule a strategy out.
// Of what time did not allow to look at, nothing is claimed.
TEST(Search, ClaimsNothingOfWhatItDidNotLookAt) {
  const study::LoadedStudy study = study_of(kBox, "megatron-lm", kSmall);
  std::atomic<int> asked = 0;  // from any thread
  const auto result =
      run_search(study, {.simulate = 2, .certify = 0, .stop = [&] { return ++asked > 40; }});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->partial);
  EXPECT_FALSE(result->certified);
  EXPECT_FALSE(result->best_bound);
  EXPECT_EQ(result->gap(), 0);
}

TEST(Search, SaysWhyNot) {
  const study::LoadedStudy study = study_of(kBox, "megatron-lm", kSmall);
  const auto cause = [&](const std::string& words) {
    const auto result = run_search(study, {.simulate = 8, .certify = 0, .why_not = words});
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    return result && result->why_not ? *result->why_not : WhyNot{};
  };
  EXPECT_EQ(cause("tp3").cause, WhyNot::Cause::kSizes);
  EXPECT_FALSE(cause("tp3").in_space);
  const WhyNot slow = cause("tp8 pp=1 mb1 full");
  EXPECT_TRUE(slow.in_space);
  EXPECT_TRUE(slow.cause == WhyNot::Cause::kBound || slow.cause == WhyNot::Cause::kEstimate);
  EXPECT_THAT(slow.message, HasSubstr(" behind: "));
  const WhyNot other = cause("mb64 dp1 tp1 pp1");
  EXPECT_FALSE(other.in_space);
  EXPECT_EQ(other.cause, WhyNot::Cause::kSpace);
  const auto huge =
      run_search(study_of(kBox, "megatron-lm", kHuge), {.simulate = 1, .why_not = "tp8 pp1"});
  ASSERT_TRUE(huge && huge->why_not);
  EXPECT_EQ(huge->why_not->cause, WhyNot::Cause::kMemory);
  EXPECT_THAT(huge->why_not->message, HasSubstr(" more than the "));
  // What there is none of, and cuts that are not those of the space.
  EXPECT_EQ(cause("ep8").cause, WhyNot::Cause::kSizes);
  const auto twice = run_search(study, {.why_not = "tp8 tp4"});
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message, HasSubstr("'tp4' says tp once more"));
  const auto wrong = run_search(study, {.why_not = "tp8 fast"});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("'fast' is no part of a strategy; write words"));
}

// Asked to stop before it has begun, a search still looks at nothing; in the midst, it has the best
// so far.
TEST(Search, GivesTheBestSoFarWhenItIsStopped) {
  const study::LoadedStudy study = study_of(kBox, "megatron-lm", kSmall);
  std::int64_t asked = 0;
  const auto result = run_search(study, {.threads = 1, .stop = [&] { return ++asked > 50; }});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->partial);
  EXPECT_FALSE(result->certified);
  EXPECT_GT(result->not_reached, 0);
  EXPECT_EQ(result->simulated.size(), 1U);
  EXPECT_THAT(search_text(study, *result, 3), HasSubstr("not looked at: the time was over"));
}

TEST(Search, StopsAtItsTimeLimit) {
  const study::LoadedStudy study = study_of(kBox, "megatron-lm", kSmall);
  const auto result = run_search(study, {.time_limit = std::chrono::duration<double>(0)});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->partial);
  EXPECT_TRUE(result->simulated.empty());
}

}  // namespace search_test
}  // namespace foreshard::search
