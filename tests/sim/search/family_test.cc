#include "sim/search/family.h"

#include "tests/test.h"

#include "sim/search/device_subset.h"
#include "sim/search/internal/bound.h"
#include "sim/search/internal/forms.h"
#include "sim/search/internal/ranking.h"
#include "sim/search/search.h"
#include "sim/search/space.h"
#include "sim/simulate/cost.h"
#include "sim/simulate/simulate.h"
#include "sim/study/run.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::search::family_test {

study::LoadedStudy study_of(const std::string& cluster, const std::string& model,
                            const std::string& strategy) {
  return value_of(study::load_study(
      {.cluster = cluster, .model = model, .strategy = strategy, .sizes_matter = false},
      shipped_options()));
}

constexpr const char* kSmall =
    "{name: small, layers: 4, hidden: 1024, heads: 16, vocabulary: 32000, sequence: 1024}";
constexpr const char* kMixture =
    "{name: mixture, layers: 4, hidden: 1024, heads: 16, kv_heads: 8, vocabulary: 32000, sequence: "
    "1024, bias: false, activation: swiglu, positions: rotary, norm: rms-norm, tied_embeddings: "
    "false, dropout: false, experts: 8, experts_per_token: 2, expert_ffn: 512}";
constexpr const char* kMixed =
    "{name: two, groups: [{node: {device: A100-SXM-80GB, gpus: 4, nvlink: {bandwidth: 300 GB/s}, "
    "nics: {count: 1, bandwidth: 200 Gbit/s}}}, {node: {device: H100-SXM, gpus: 4, nvlink: "
    "{bandwidth: 450 GB/s}, nics: {count: 1, bandwidth: 400 Gbit/s}}}], fabric: {kind: "
    "single-switch}}";

Recomputation selective(std::vector<foreshard::LayerPart> parts) {
  return {Recompute::kSelective, std::move(parts)};
}

// Gradients of a layer read what its parts make, but for the product that ends a branch: that is
// read by the dropout behind it, whose mask is kept. Computed again alone, it frees nothing; with
// the residual, it frees what that reads. There are 8 parts.
TEST(WaysToRecompute, AreThoseThatKeepLessThanTheirSubsets) {
  const auto study = study_of("two-dgx-a100", kSmall, "{global_batch: 8, framework: megatron-lm}");
  const auto choices = recompute_choices(study.model, study.strategy);
  using enum foreshard::LayerPart;
  EXPECT_THAT(choices.all, Contains(selective({kCoreAttention})));
  EXPECT_THAT(choices.all, Contains(selective({kNorm, kActivation})));
  EXPECT_THAT(choices.all, Contains(selective({kMlpDown, kResidual})));
  EXPECT_THAT(choices.all, Not(Contains(selective({kMlpDown}))));
  EXPECT_EQ(std::ranges::count(choices.all, Recompute::kFull, &Recomputation::how), 1);
  EXPECT_EQ(choices.all.size(), 160U);
}

// Eight layers on two stages of two chunks: two layers each, of which none, one or all are computed
// again.
TEST(Family, HasEachMemberOnce) {
  auto study = study_of("two-dgx-a100", kSmall, "{global_batch: 8, framework: megatron-lm}");
  study.model.layers = 8;
  Strategy base = study.strategy;
  base.pipeline_parallel = base.virtual_stages = 2;
  base.schedule = "interleaved";
  const auto choices = recompute_choices(study.model, base);
  const Family family(base, study.model, choices);
  EXPECT_EQ(family.layers, 2);
  EXPECT_EQ(family.size(), 1 + 2 * std::ssize(choices.all));
  EXPECT_EQ(family.strategy_of({}).recompute, Recompute::kNone);
  const auto full = static_cast<std::int32_t>(choices.all.size()) - 1;
  const Strategy one = family.strategy_of({.choice = full, .layers = 1});
  EXPECT_EQ(one.recompute, Recompute::kFull);
  EXPECT_EQ(one.recompute_layers, 1);
}

// Compares with the estimate of each by itself.
class Comparing : public FamilyVisitor {
 public:
  Comparing(const Family& family, Estimator& alone) : family_(family), alone_(alone) {}

  std::int64_t met = 0;
  std::int64_t large = 0;
  std::vector<double> ratios;

  bool is_of_interest(Seconds) const override { return true; }
  void count_slower(std::int64_t, Seconds) override { FAIL() << "all are of interest"; }
  bool fits(const FamilyMember&, const Estimate&) const override { return true; }
  void add_large(const FamilyMember&, const Estimate&) override { FAIL() << "all fit"; }
  bool is_large(const Estimate&) const override { return false; }
  void count_large(std::int64_t) override { FAIL() << "all fit"; }
  void add(const FamilyMember& member, const Estimate& found) override {
    if (met++ % (family_.size() / 50 + 1) != 0) return;
    const Strategy strategy = family_.strategy_of(member);
    const auto expected = value_of(alone_.estimate(strategy));
    const std::string what = describe(strategy);
    EXPECT_NEAR(found.peak / expected.peak, 1, 1e-12) << what;
    EXPECT_EQ(found.memory, expected.memory) << what;
    // What fits is not asked what it needs at least.
    if (found.peak > found.memory) {
      ++large;
      EXPECT_NEAR(found.least / expected.least, 1, 1e-12) << what;
    } else {
      EXPECT_LE(found.least / expected.least, 1 + 1e-12) << what;
    }
    EXPECT_NEAR(found.bound / expected.bound, 1, 1e-12) << what;
    ratios.push_back(found.step / expected.step);
  }

 private:
  const Family& family_;
  Estimator& alone_;
};

struct Case {
  const char* name;
  const char* cluster;
  const char* model;
  const char* strategy;
};

class FamilyEstimates : public testing::TestWithParam<Case> {};

// Memory and bound are the same, the step is that of a critical path: nearly always the longest.
TEST_P(FamilyEstimates, AreThoseOfTheirMembers) {
  const Case& of = GetParam();
  const auto study = study_of(of.cluster, of.model, of.strategy);
  const auto cluster = value_of(cluster_of(study, study.pool.devices));
  const sim::SimulatedCost cost(cluster, study.communication);
  Estimator estimator(study.model, cluster, study.pool.devices, cost);
  Estimator alone(study.model, cluster, study.pool.devices, cost);
  const auto choices = recompute_choices(study.model, study.strategy);
  ASSERT_THAT(faults_in(study.strategy, study.model, study.pool.size()), IsEmpty());
  const Family family(study.strategy, study.model, choices);
  Comparing comparing(family, alone);
  ASSERT_EQ(message_of(estimator.family(family, comparing)), "accepted");
  EXPECT_EQ(comparing.met, family.size());
  EXPECT_EQ(comparing.large > 0, of.name == std::string("OfLittleMemory"));
  double sum = 0;
  for (const double ratio : comparing.ratios) {
    EXPECT_NEAR(ratio, 1, 0.05);
    sum += std::abs(ratio - 1);
  }
  EXPECT_LT(sum / static_cast<double>(comparing.ratios.size()), 0.002);
  const auto least = estimator.least_step(study.strategy);
  const auto base = alone.estimate(study.strategy);
  const auto laid_out = estimator.least_step_laid_out(study.strategy);
  ASSERT_TRUE(least && laid_out && base);
  EXPECT_LE(*least, *laid_out);
  EXPECT_LE(*laid_out, base->bound);
  EXPECT_GT(*least, 0.3 * base->bound);
}

INSTANTIATE_TEST_SUITE_P(
    All, FamilyEstimates,
    testing::Values(
        Case{"Pipeline", "two-dgx-a100", kSmall,
             "{tensor_parallel: 2, sequence_parallel: true, pipeline_parallel: 2, data_parallel: "
             "2, global_batch: 32, zero_stage: 1, framework: megatron-lm}"},
        Case{"Interleaved", "two-dgx-a100", kSmall,
             "{tensor_parallel: 2, pipeline_parallel: 2, virtual_stages: 2, schedule: interleaved, "
             "data_parallel: 2, global_batch: 16, framework: megatron-lm}"},
        Case{"Uneven", "two-dgx-a100", kSmall,
             "{pipeline_parallel: 2, layers_per_stage: [3, 1], data_parallel: 2, global_batch: 16, "
             "framework: megatron-lm}"},
        Case{"Shards", "two-dgx-a100", kSmall,
             "{data_parallel: 8, global_batch: 16, zero_stage: 3, framework: pytorch-fsdp}"},
        Case{"BackwardInTwo", "two-dgx-a100", kSmall,
             "{pipeline_parallel: 2, schedule: zb-h1, data_parallel: 2, global_batch: 16, "
             "framework: megatron-lm}"},
        Case{"Experts", "two-dgx-a100", kMixture,
             "{expert_parallel: 4, data_parallel: 4, global_batch: 16, framework: megatron-lm}"},
        Case{"OfLittleMemory",
             "{extends: two-dgx-a100, node: {extends: dgx-a100-80gb, device: {extends: "
             "A100-SXM-80GB, memory: 1.2 GiB}}}",
             kSmall,
             "{tensor_parallel: 2, sequence_parallel: true, data_parallel: 4, micro_batch: 4, "
             "global_batch: 32, zero_stage: 3, framework: megatron-lm}"},
        Case{"Mixed", kMixed, kSmall,
             "{pipeline_parallel: 2, data_parallel: 4, global_batch: 16, framework: megatron-lm}"}),
    [](const auto& of) { return std::string(of.param.name); });

// One layer takes a second, forward and backward: of 4 micro-batches, two stages of 5 and 3 layers
// take 4 * 5 s and (5 + 4 * 3) s, of 4 each 4 * 4 s and (4 + 4 * 4) s. No cut ends before 20 s,
// though without whole layers 18.3 s could do. Of eight stages with one layer each the last one
// ends after (7 + 4) s. In two pieces, one layer is before the second stage, whatever the others
// hold.
TEST(LeastStep, CutsNoLayer) {
  const auto least = [](const StepWork& work, std::int64_t stages, std::int64_t chunks) {
    Strategy strategy;
    strategy.pipeline_parallel = stages;
    strategy.virtual_stages = chunks;
    strategy.schedule = chunks > 1 ? "interleaved" : "1f1b";
    strategy.global_batch = 4;
    return least_step(strategy, work) / 1_s;
  };
  const StepWork bare{.all = 8_s, .layer = 1_s, .first = {}, .last = {}, .layers = 8};
  EXPECT_NEAR(least(bare, 1, 1), 32, 1e-9);
  EXPECT_NEAR(least(bare, 2, 1), 20, 1e-5);
  EXPECT_NEAR(least(bare, 8, 1), 11, 1e-5);
  EXPECT_NEAR(least(bare, 2, 2), 17, 1e-5);
  // An embedding and a head of a second each: 5 layers and 3 take 4 * 6 s and (6 + 4 * 4) s.
  const StepWork whole{.all = 10_s, .layer = 1_s, .first = 1_s, .last = 1_s, .layers = 8};
  EXPECT_NEAR(least(whole, 2, 1), 24, 1e-5);
}

TEST(LeastStep, IsNoMoreThanThatOfAnyCut) {
  const auto study = study_of("two-dgx-a100",
                              "{name: bare, layers: 8, hidden: 1024, heads: 16, vocabulary: 16, "
                              "sequence: 1024}",
                              "{pipeline_parallel: 2, micro_batch: 1, global_batch: 4, framework: "
                              "megatron-lm}");
  const auto cluster = value_of(cluster_of(study, study.pool.devices));
  const sim::SimulatedCost cost(cluster, study.communication);
  Estimator estimator(study.model, cluster, study.pool.devices, cost);
  Strategy one = study.strategy;
  one.pipeline_parallel = 1;
  const auto alone = estimator.least_step(one);
  const auto piped = estimator.least_step(study.strategy);
  ASSERT_TRUE(alone && piped);
  EXPECT_GT(*piped / *alone, 0.25 / (1 - 0.75 * 0.75));
  for (const std::int64_t first : {1, 3, 4, 5, 7}) {
    Strategy cut = study.strategy;
    cut.layers_per_stage = {first, 8 - first};
    EXPECT_LE(*piped, value_of(estimator.estimate(cut)).bound) << first;
  }
}

// What one estimator has planned serves another, also where stages lie elsewhere.
TEST(SharedPlanForms, ChangeNoEstimate) {
  const auto study = study_of("two-dgx-a100", kSmall,
                              "{tensor_parallel: 2, pipeline_parallel: 4, data_parallel: 2, "
                              "global_batch: 16, framework: megatron-lm}");
  const auto cluster = value_of(cluster_of(study, study.pool.devices));
  const sim::SimulatedCost cost(cluster, study.communication);
  const auto estimator = [&](std::shared_ptr<SharedPlanForms> forms) {
    return Estimator(study.model, cluster, study.pool.devices, cost, std::move(forms));
  };
  const auto forms = std::make_shared<SharedPlanForms>();
  Estimator first = estimator(forms);
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{}, {"tensor", "pipeline", "data"}}) {
    Strategy strategy = study.strategy;
    if (!order.empty()) strategy.rank_order = order;
    ASSERT_TRUE(first.estimate(strategy));
    const auto shared = estimator(forms).estimate(strategy);
    const auto alone = estimator({}).estimate(strategy);
    ASSERT_TRUE(shared && alone);
    EXPECT_EQ(shared->step, alone->step);
    EXPECT_EQ(shared->bound, alone->bound);
    EXPECT_EQ(shared->peak, alone->peak);
  }
}

// Counts members, those that leave less than `room` among the large ones.
class Fitting : public FamilyVisitor {
 public:
  Fitting(Bytes room, bool skips) : room_(room), skips_(skips) {}

  std::vector<FamilyMember> small;
  std::vector<Bytes> rooms;
  std::int64_t large = 0;
  std::int64_t skipped = 0;

  bool is_of_interest(Seconds) const override { return true; }
  void count_slower(std::int64_t, Seconds) override { FAIL() << "all are of interest"; }
  bool fits(const FamilyMember&, const Estimate& of) const override {
    return of.memory - of.peak >= room_;
  }
  void add_large(const FamilyMember&, const Estimate&) override { ++large; }
  bool is_large(const Estimate& least) const override { return skips_ && !fits({}, least); }
  void count_large(std::int64_t members) override { large += members, skipped += members; }
  void add(const FamilyMember& member, const Estimate& found) override {
    small.push_back(member);
    rooms.push_back(found.memory - found.peak);
  }

 private:
  Bytes room_;
  bool skips_;
};

// Those that are skipped do not fit, however much memory there is. Of a deep stage, most of those
// that do not fit are skipped.
TEST(Family, SkipsOnlyWhatDoesNotFit) {
  const std::string model =
      "{name: deep, layers: 12, hidden: 1024, heads: 16, vocabulary: 32000, sequence: 1024}";
  for (const char* strategy :
       {"{data_parallel: 2, micro_batch: 2, global_batch: 16, framework: megatron-lm}",
        "{pipeline_parallel: 2, layers_per_stage: [5, 7], global_batch: 16, framework: "
        "megatron-lm}",
        "{pipeline_parallel: 2, virtual_stages: 2, schedule: interleaved, tensor_parallel: 2, "
        "global_batch: 4, framework: megatron-lm}",
        "{pipeline_parallel: 2, schedule: gpipe, global_batch: 16, framework: megatron-lm}"}) {
    SCOPED_TRACE(strategy);
    const auto study = study_of("two-dgx-a100", model, strategy);
    const auto cluster = value_of(cluster_of(study, study.pool.devices));
    const sim::SimulatedCost cost(cluster, study.communication);
    Estimator estimator(study.model, cluster, study.pool.devices, cost);
    const auto choices = recompute_choices(study.model, study.strategy);
    const Family family(study.strategy, study.model, choices);
    Fitting all(Bytes::from_base(-1e18), true);
    ASSERT_TRUE(estimator.family(family, all).ok());
    ASSERT_EQ(std::ssize(all.rooms), family.size());
    std::vector<Bytes> rooms = all.rooms;
    std::ranges::sort(rooms);
    for (const std::size_t tenth : {1U, 5U, 9U}) {
      const Bytes room = rooms[rooms.size() * tenth / 10];
      Fitting looking(room, false);
      Fitting skipping(room, true);
      ASSERT_TRUE(estimator.family(family, looking).ok());
      ASSERT_TRUE(estimator.family(family, skipping).ok());
      EXPECT_EQ(skipping.small, looking.small);
      EXPECT_EQ(skipping.large, looking.large);
      EXPECT_EQ(looking.skipped, 0);
      if (study.strategy.pipeline_parallel == 1) {
        EXPECT_GT(skipping.skipped, skipping.large / 2);
      }
    }
    Fitting none(rooms.back() + Bytes::from_base(1e12), true);
    ASSERT_TRUE(estimator.family(family, none).ok());
    EXPECT_EQ(none.skipped, family.size());
  }
}

// Whatever is pruned, each member is counted once.
TEST(Shortlist, CountsEachMemberOnce) {
  const auto study = study_of("two-dgx-a100", kSmall, "{global_batch: 16, framework: megatron-lm}");
  const auto cluster = value_of(cluster_of(study, study.pool.devices));
  const sim::SimulatedCost cost(cluster, study.communication);
  Estimator estimator(study.model, cluster, study.pool.devices, cost);
  const auto choices = recompute_choices(study.model, study.strategy);
  Shortlist keeper({}, 16, study.model, false);
  std::int64_t members = 0;
  for (const Strategy& base :
       enumerate({.level = 2, .recompute = {Recompute::kNone}}, study.strategy, study.model, 16)
           .candidates) {
    const Family family(base, study.model, choices);
    members += family.size();
    keeper.begin(family, 0);
    ASSERT_TRUE(estimator.family(family, keeper).ok());
    EXPECT_EQ(keeper.left(), 0);
  }
  const auto kept = keeper.finish();
  const Unlisted& others = keeper.unlisted();
  EXPECT_GE(kept.size(), 16U);
  EXPECT_LE(kept.size(), 32U);
  EXPECT_GT(others.far, 0);
  EXPECT_FALSE(others.near.empty());
  EXPECT_EQ(std::ssize(kept) + others.far + std::ssize(others.near) + keeper.large(), members);
  ASSERT_TRUE(others.limit);
  for (const Seconds bound : others.near) EXPECT_LT(bound, *others.limit);
}

// Everything that can be recomputed of both layers or of the first one, all simulated: the search
// finds the best, and is certain of it.
TEST(SearchOfFamilies, FindsTheBestOfAllMembers) {
  // Some 3 GB of states and 4 GB of activations, on devices of 6 GiB.
  const auto study = study_of(
      "{name: one, node: {device: A100-SXM-40GB, gpus: 2, nvlink: {bandwidth: 300 GB/s}}}",
      "{name: two-layers, layers: 2, hidden: 4096, heads: 32, vocabulary: 32000, sequence: 2048}",
      "{global_batch: 16, framework: megatron-lm}");
  const SearchSpace space{.level = 3,
                          .tensor_parallel = {2},
                          .pipeline_parallel = {1},
                          .micro_batch = {16},
                          .zero_stage = {0},
                          .sequence_parallel = true,
                          .any_framework = true};
  const auto found = value_of(
      run_search(study, {.space = space, .simulate = 4, .certify = 100'000, .threads = 2}));
  ASSERT_FALSE(found.simulated.empty());

  const auto cluster = value_of(cluster_of(study, study.pool.devices));
  const auto choices = recompute_choices(study.model, study.strategy);
  std::optional<Seconds> best;
  std::int64_t fit = 0;
  std::int64_t all = 0;
  SearchSpace bases = space;
  bases.recompute = {Recompute::kNone};
  for (const Strategy& base :
       enumerate(bases, study.strategy, study.model, study.pool.size()).candidates) {
    const Family family(base, study.model, choices);
    for (std::int32_t choice = -1; choice < std::ssize(choices.all); ++choice) {
      for (std::int64_t layers = 0; layers < (choice < 0 ? 1 : family.layers); ++layers) {
        const Strategy one = family.strategy_of({.choice = choice, .layers = layers});
        ++all;
        auto program = value_of(lower::lower(study.model, one, {}));
        const auto placed =
            study::with_launch_times(study.pool.placed(std::move(program)), cluster);
        const auto step =
            value_of(sim::simulate(cluster, placed, study.communication,
                                   {.critical_path = false, .reserve = reserve_of(one)}));
        if (!step.fits) continue;
        ++fit;
        if (!best || step.step < *best) best = step.step;
      }
    }
  }
  EXPECT_EQ(all, 1 + 2 * std::ssize(choices.all));
  EXPECT_EQ(found.considered, all);
  EXPECT_GT(fit, 0);
  ASSERT_TRUE(best);
  EXPECT_EQ(found.simulated.front().step, *best);
  EXPECT_TRUE(found.certified);
  EXPECT_EQ(std::ssize(found.simulated) + found.slower + found.too_large, all);
}

}  // namespace foreshard::search::family_test
