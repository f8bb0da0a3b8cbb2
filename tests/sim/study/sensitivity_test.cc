// What faster parts buy, on shipped studies and random ones: derivatives are finite differences,
// and all of them together are the step.
#include "sim/simulate/sensitivity.h"

#include <cstdio>
#include <fmt/format.h>

#include "tests/seeds.h"
#include "tests/sim/simulate/random_cluster.h"
#include "tests/strategies/lower/random_strategy.h"
#include "tests/test.h"

#include "sim/study/run.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::sim::sensitivity_test {

const std::string kConfigs = FORESHARD_SOURCE_DIR "/configs";

double step_of(const ScalableStep& step, const std::vector<double>& factors) {
  return value_of(engine::run_fluid(step.at(factors))).makespan.in_base();
}

// Differences of the step by the logarithm of one factor: to more of it, to less, and across both.
struct Differences {
  double faster = 0;
  double slower = 0;
  double central = 0;
};
Differences differences_of(const ScalableStep& step, double base, std::size_t speed, double by) {
  std::vector<double> factors(step.speeds().size(), 1.0);
  factors[speed] = 1 + by;
  const double faster = step_of(step, factors);
  factors[speed] = 1 - by;
  const double slower = step_of(step, factors);
  return {.faster = (faster - base) / std::log1p(by),
          .slower = (slower - base) / std::log1p(-by),
          .central = (faster - slower) / (std::log1p(by) - std::log1p(-by))};
}

// Whether a derivative is within 1 % of the difference, or 0.01 % of the step where that is more.
bool agree(double slope, double difference, double step) {
  return std::abs(slope - difference) <= std::max(0.01 * std::abs(difference), 1e-4 * step);
}

// The three things that hold of every step. Where a derivative is not the difference of 0.1 %, the
// step must have a kink within that: the slope to more of the speed is another than that to less,
// so that the difference is a mean of two slopes, and a difference of 0.001 %, on this side of the
// kink, shows the derivative. \return of how many speeds the step has one.
int expect_sound(const ScalableStep& step, double simulated) {
  const std::vector<double> ones(step.speeds().size(), 1.0);
  const engine::Workload workload = step.at(ones);
  const auto times = value_of(engine::run_fluid(workload));
  const double base = times.makespan.in_base();
  EXPECT_NEAR(base, simulated, 1e-9 * simulated) << "the step that is scaled is the one simulated";

  const auto slopes = engine::slopes_of_makespan(workload, times, step.slopes());
  double sum = 0;
  int kinks = 0;
  for (std::size_t s = 0; s < slopes.size(); ++s) {
    sum += slopes[s];
    const Differences wide = differences_of(step, base, s, 1e-3);
    if (agree(slopes[s], wide.central, base)) continue;
    ++kinks;
    const double nearer = differences_of(step, base, s, 1e-5).central;
    const std::string which =
        fmt::format("{} {}: {}, by differences {} ({} and {}) and {}",
                    key_of(step.speeds()[s].kind), step.speeds()[s].device, slopes[s] / base,
                    wide.central / base, wide.faster / base, wide.slower / base, nearer / base);
    EXPECT_TRUE(agree(slopes[s], nearer, base)) << which;
    EXPECT_FALSE(agree(wide.faster, wide.slower, base)) << which << ": no kink";
    std::printf("a kink: %s\n", which.c_str());
  }
  EXPECT_NEAR(sum, -base, 1e-6 * base) << "everything twice as fast takes half as long";
  const double twice = step_of(step, std::vector<double>(ones.size(), 2.0));
  EXPECT_NEAR(2 * twice, base, 1e-9 * base);
  return kinks;
}

std::vector<std::string> studies_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    files.push_back(file.path().string());
  std::ranges::sort(files);
  return files;
}

// Kinks of a study; nothing where its step is disturbed, and has no derivatives.
std::optional<int> kinks_of(const std::string& file) {
  const auto study = study::load_study({.study = file}, {.catalogue = {kConfigs}, .overrides = {}});
  EXPECT_TRUE(study) << study.error().message;
  if (!study || study->disturbances) return std::nullopt;
  const auto run = value_of(study::run_study(*study, {}));
  const auto step = value_of(ScalableStep::of(run.cluster, run.program, study->communication, {}));
  return expect_sound(step, run.prediction.step.in_base());
}

// Shipped studies (by default every third, else all), and as many other frozen ones as it takes to
// have enough. A study that is not within 1 % of the differences in every speed has a kink there.
TEST(Sensitivity, OfShippedStudiesIsThatOfDifferences) {
  const int kLeast = seeds(7, 20);
  const auto kEvery = static_cast<std::size_t>(seeds(3, 1));
  int within = 0;
  const auto count = [&](const std::string& file) {
    SCOPED_TRACE(file);
    const auto kinks = kinks_of(file);
    if (kinks && *kinks == 0) ++within;
    if (kinks && *kinks > 0) std::printf("%s has %d\n", file.c_str(), *kinks);
  };
  const auto shipped = studies_in(kConfigs + "/studies");
  for (std::size_t i = 0; i < shipped.size(); i += kEvery) count(shipped[i]);
  for (const std::string& file :
       studies_in(FORESHARD_SOURCE_DIR "/tests/golden/predictions/studies"))
    if (within < kLeast && file.find("zero-") != std::string::npos) count(file);
  std::printf("%d studies have all derivatives within 1 %% of differences of 0.1 %%\n", within);
  EXPECT_GE(within, kLeast);
}

TEST(Sensitivity, OfRandomTrainingsIsThatOfDifferences) {
  const int kLeast = seeds(10, 20);
  constexpr int kMostDrawn = 24;  // some have a kink, which is shown to be one
  int within = 0;
  yaml::Loader loader({.catalogue = {kConfigs}, .overrides = {}});
  const auto nccl = value_of(loader.read_ref<comm::Parameters>("nccl", "communication"));
  for (int seed = 1; within < kLeast && seed <= kMostDrawn; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(static_cast<unsigned>(seed));
    const foreshard::Training training = random_training(random, 16);
    const ClusterView cluster =
        random_cluster(random, training.strategy.devices(), {.routing = Routing::kSpread});
    auto lowered = value_of(lower::lower(training.model, training.strategy, {}));
    const auto program = study::with_launch_times(std::move(lowered), cluster);
    const auto prediction = value_of(simulate(cluster, program, nccl, {}));
    const auto step = value_of(ScalableStep::of(cluster, program, nccl, {}));
    within += expect_sound(step, prediction.step.in_base()) == 0;
  }
  EXPECT_EQ(within, kLeast);
}

// A node with a network that hardly matters and one that decides: the network is worth nothing, and
// nearly all.
TEST(Sensitivity, FollowsWhatDecides) {
  const auto network_worth = [&](const std::string& bandwidth) {
    const auto study = value_of(study::load_study(
        {.study = kConfigs + "/studies/llama3-8b-h100-64-fsdp.yaml"},
        {.catalogue = {kConfigs}, .overrides = {{"cluster.node.nics.bandwidth", bandwidth}}}));
    const auto cluster = study::cluster_of(study);
    const auto program = study::program_of(study, *cluster);
    const auto worth = value_of(sensitivities_of(*cluster, *program, study.communication, {}));
    double sum = 0;
    for (const Sensitivity& one : worth.of) {
      sum += one.elasticity;
      if (one.elasticity < -0.01) {
        EXPECT_LT(one.step_at_more, worth.step) << key_of(one.speed.kind);
      }
    }
    EXPECT_NEAR(sum, -1, 1e-6);
    const auto network = std::ranges::find(worth.of, SpeedKind::kNetwork,
                                           [](const Sensitivity& one) { return one.speed.kind; });
    return network == worth.of.end() ? 0 : network->elasticity;
  };
  EXPECT_NEAR(network_worth("4000 Gbit/s"), 0, 0.02);
  EXPECT_LT(network_worth("10 Gbit/s"), -0.8);
}

// Two nodes whose adapters lie behind PCIe 5.0, of which protocols use less than of the network: it
// decides from 400 Gbit/s on. What 1 % of either is worth is what a study with 1 % more or less of
// it takes.
TEST(Sensitivity, IsWhatSettingTheValueShows) {
  constexpr double kPcieEfficiency = 0.88;
  const auto loaded = [](double adapters, double pcie) {
    return value_of(study::load_study(
        {.cluster = "{nodes: 2, node: dgx-h100, fabric: {kind: single-switch}}",
         .model = "{name: l, layers: 4, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14336, "
                  "vocabulary: 32000, sequence: 4096, norm: rms-norm, activation: swiglu, "
                  "positions: rotary, bias: false, tied_embeddings: false, dropout: false}",
         .strategy = "{tensor_parallel: 2, data_parallel: 8, zero_stage: 3, global_batch: 16, "
                     "micro_batch: 2, framework: megatron-lm}"},
        {.catalogue = {kConfigs},
         .overrides = {{"cluster.node.nics.bandwidth", std::to_string(adapters) + " Gbit/s"},
                       {"cluster.node.pcie.efficiency", std::to_string(pcie * kPcieEfficiency)}}}));
  };
  const auto step = [&](double adapters, double pcie) {
    return value_of(study::run_study(loaded(adapters, pcie), {})).prediction.step.in_base();
  };
  for (const auto& [adapters, decides] :
       {std::pair{360.0, SpeedKind::kNetwork}, std::pair{440.0, SpeedKind::kPcie}}) {
    const auto study = loaded(adapters, 1);
    const auto cluster = study::cluster_of(study, study.pool.devices);
    const auto program = study::program_of(study, *cluster);
    const auto worth = value_of(sensitivities_of(*cluster, *program, study.communication, {}));
    for (const SpeedKind kind : {SpeedKind::kNetwork, SpeedKind::kPcie}) {
      const bool network = kind == SpeedKind::kNetwork;
      const double ratio = step(adapters * (network ? 1.01 : 1), network ? 1 : 1.01) /
                           step(adapters * (network ? 0.99 : 1), network ? 1 : 0.99);
      const double shown = std::log(ratio) / std::log(1.01 / 0.99);
      const auto one = std::ranges::find(worth.of, kind,
                                         [](const Sensitivity& each) { return each.speed.kind; });
      EXPECT_NEAR(one == worth.of.end() ? 0 : one->elasticity, shown, 0.005) << adapters;
      EXPECT_EQ(std::abs(shown) > 0.02, kind == decides) << adapters << " " << shown;
    }
  }
}

TEST(Sensitivity, IsRefusedMessageByMessage) {
  const auto study =
      value_of(study::load_study({.study = kConfigs + "/studies/gpt-1.7b-a100-8.yaml"},
                                 {.catalogue = {kConfigs}, .overrides = {}}));
  const auto cluster = study::cluster_of(study);
  const auto program = study::program_of(study, *cluster);
  const auto worth = sensitivities_of(*cluster, *program, study.communication,
                                      {.granularity = Granularity::kStepwise});
  ASSERT_FALSE(worth);
  EXPECT_EQ(worth.error().code, Error::Code::kUnsupported);
}

}  // namespace foreshard::sim::sensitivity_test
