// Energy and rent by hand, and the length of a training.
#include "sim/study/expense.h"

#include "tests/base/temporary_folder.h"
#include "tests/test.h"

#include "sim/study/run.h"

namespace foreshard::study::expense_test {

const yaml::Options kCatalogue{.catalogue = {FORESHARD_SOURCE_DIR "/configs"}, .overrides = {}};

StudyRun run(const std::filesystem::path& file, std::vector<yaml::Override> overrides = {}) {
  yaml::Options options = kCatalogue;
  options.overrides = std::move(overrides);
  return value_of(run_study(value_of(load_study({.study = file}, std::move(options))), {}));
}

constexpr double kJoulesPerKwh = 3.6e6;

// The study of ./run: 1,024 A100 (400 W at the limit, 64 W idle, 0.405 of what lies between while
// they communicate, 2.4984 USD/h) in 16 stages of 64, each with its own breakdown, in hosts that
// draw 250 W beside each of them. With t the step, k_s the time of stage s in kernels and c_s in
// communication,
//   devices = sum over stages of 64 x (64 W x t + 336 W x (k_s + 0.405 c_s))
//   hosts   = 1,024 x 250 W x t
//   rent    = 1,024 x 2.4984 USD/h x t
// 1,024 devices at about 340 W for 33 s make about 11.5 MJ or 3.2 kWh, hosts 8.4 MJ or 2.3 kWh;
// 1,024 device-steps of 33 s are 9.4 device-hours or 23 USD. 2T tokens in steps of 1,536 sequences
// of 2,048 tokens are 635,783 steps (the last one not full).
TEST(Expense, OfTheStudyInTheReadme) {
  const StudyRun got = run(FORESHARD_SOURCE_DIR "/configs/studies/gpt3-175b-a100-1024.yaml",
                           {{"train", "2T tokens"}});
  const sim::Prediction& p = got.prediction;
  const double step = p.step.in_base();
  double joules = 0;
  for (const sim::DeviceClass& one : p.classes) {
    const sim::Breakdown& time = one.breakdown;
    const double kernels = (time.compute + time.optimizer).in_base();
    const double waits = (time.bubble + time.host).in_base();
    joules += static_cast<double>(one.count) *
              (64 * step + 336 * (kernels + 0.405 * (step - kernels - waits)));
  }
  ASSERT_TRUE(p.expense.energy && p.expense.rent);
  EXPECT_NEAR(p.expense.parts.devices.in_base(), joules, 1e-9 * joules);
  const double hosts = 1024 * 250 * step;
  EXPECT_NEAR(p.expense.parts.hosts.in_base(), hosts, 1e-9 * hosts);
  EXPECT_NEAR(p.expense.energy->in_base(), joules + hosts, 1e-9 * (joules + hosts));
  EXPECT_NEAR(p.expense.rent->in_base(), 1024 * 2.4984 / 3600 * step, 1e-9 * step);
  EXPECT_EQ(p.expense.unused, 0);
  EXPECT_EQ(p.expense.pue, 1);
  // The same in rough numbers, from the page that ./run prints.
  EXPECT_NEAR(joules / kJoulesPerKwh, 3.2, 0.2);
  EXPECT_NEAR(hosts / kJoulesPerKwh, 2.3, 0.2);
  EXPECT_NEAR(p.expense.rent->in_base(), 23, 2);
  ASSERT_TRUE(p.training);
  EXPECT_EQ(p.training->steps, 635783);
}

constexpr const char* kOne =
    "cluster: {name: box, node: dgx-a100-80gb}\n"
    "model: {name: small, layers: 8, hidden: 1024, heads: 16, vocabulary: 1000, sequence: 512}\n"
    "strategy: {data_parallel: 8, global_batch: 8}\n";

// The price of the cluster takes the place of the device's; PUE multiplies the energy alone.
TEST(Expense, FollowsTheClustersPriceAndPue) {
  const TemporaryFolder folder;
  const auto file = folder.write("one.yaml", kOne);
  const sim::Expense before = run(file).prediction.expense;
  const sim::Prediction after =
      run(file, {{"cluster.rent", "{value: 36 USD/h, source: test, evidence: user}"},
                 {"cluster.pue", "{value: 1.5, source: test, evidence: user}"}})
          .prediction;
  EXPECT_NEAR(*after.expense.energy / *before.energy, 1.5, 1e-12);
  EXPECT_NEAR(after.expense.rent->in_base(), 8 * 0.01 * after.step.in_base(), 1e-12);
}

// Bought for 30,000 USD and used for 4 years of 365.25 days, a device costs 0.856 USD/h. At 0.10
// USD and 0.4 kg of CO2 for each kWh the bill follows the energy, PUE and all.
TEST(Expense, OfAnOwnedClusterWithItsElectricity) {
  const TemporaryFolder folder;
  const auto file = folder.write("one.yaml", kOne);
  const sim::Prediction p = run(file, {{"cluster.price", "30000 USD"},
                                       {"cluster.lifetime", "4 y"},
                                       {"cluster.electricity", "0.10 USD/kWh"},
                                       {"cluster.carbon", "0.4 kg/kWh"},
                                       {"cluster.pue", "1.2"}})
                                .prediction;
  const double written_off = 8 * 30000 / (4 * 365.25 * 86400) * p.step.in_base();
  EXPECT_TRUE(p.expense.owned);
  EXPECT_NEAR(p.expense.rent->in_base(), written_off, 1e-12 * written_off);
  const double kwh = *p.expense.energy / 1_kWh;
  EXPECT_NEAR(p.expense.electricity->in_base(), 0.10 * kwh, 1e-12 * kwh);
  EXPECT_NEAR(p.expense.carbon->in_base(), 0.4 * kwh, 1e-12 * kwh);
  EXPECT_NEAR(p.expense.usd()->in_base(), written_off + 0.10 * kwh, 1e-12);
}

TEST(Expense, SaysWhatIsWrongWithAPrice) {
  const TemporaryFolder folder;
  const auto file = folder.write("one.yaml", kOne);
  const auto fault = [&](std::vector<yaml::Override> overrides) {
    yaml::Options options = kCatalogue;
    options.overrides = std::move(overrides);
    return message_of(load_study({.study = file}, std::move(options)));
  };
  EXPECT_THAT(fault({{"cluster.price", "30000 USD"}}), HasSubstr("but not lifetime"));
  EXPECT_THAT(fault({{"cluster.lifetime", "4 y"}}), HasSubstr("is missing"));
  EXPECT_THAT(fault({{"cluster.price", "30000 USD"},
                     {"cluster.lifetime", "4 y"},
                     {"cluster.rent", "2 USD/h"}}),
              HasSubstr("so is rent: choose one"));
  EXPECT_THAT(fault({{"cluster.electricity", "0.1 USD"}}), HasSubstr("did you mean 'USD/kWh'?"));
  EXPECT_THAT(fault({{"cluster.node.device.draw.waiting", "1.5"}}), HasSubstr("between 0 and 1"));
}

TEST(Expense, IsUnknownWithoutPriceOrPower) {
  const TemporaryFolder folder;
  const sim::Expense expense =
      run(FORESHARD_SOURCE_DIR "/configs/studies/host-dp2.yaml",
          {{"cluster.electricity", "0.1 USD/kWh"}, {"cluster.carbon", "0.4 kg/kWh"}})
          .prediction.expense;
  EXPECT_FALSE(expense.energy);
  EXPECT_FALSE(expense.rent);
  EXPECT_FALSE(expense.electricity);
  EXPECT_FALSE(expense.carbon);
  EXPECT_FALSE(expense.usd());
  EXPECT_THAT(expense.without_power, ElementsAre("host-core"));
  EXPECT_THAT(expense.without_rent, ElementsAre("host-core"));
}

// A cluster of one node with two devices of 100 W, idle 20 W, and a step of 10 s on one of them.
struct Small {
  ClusterConfig config;
  ClusterView cluster;
};
Small small_cluster(const std::string& of_device, const std::string& of_cluster) {
  const TemporaryFolder folder;
  const auto file = folder.write("two.yaml", R"(
nodes: 1
node:
  device:
    extends: L40S
    power: {value: 100 W, source: test, evidence: user}
    idle_power: {value: 20 W, source: test, evidence: user}
    rent: {value: 3.6 USD/h, source: test, evidence: user}
)" + of_device + R"(
  gpus: 2
  nvlink: {bandwidth: {value: 300 GB/s, source: test, evidence: user}}
)" + of_cluster);
  auto config = value_of(yaml::Loader(kCatalogue).read_file<ClusterConfig>(file));
  auto cluster = value_of(build_cluster(config));
  return {std::move(config), std::move(cluster)};
}

sim::Prediction ten_seconds() {
  sim::Prediction prediction;
  prediction.step = 10_s;
  sim::DeviceClass one;
  one.count = 1;
  one.device = DeviceId{0};
  one.breakdown.compute = 4_s;
  one.breakdown.data = 3_s;
  one.breakdown.host = 2_s;
  one.breakdown.bubble = 1_s;
  one.kernels = {3_s, 1_s, 1_s, 0_s};  // a second of them at the same time as others
  prediction.classes = {one};
  return prediction;
}

// One of two devices works for a step of 10 s, of which it waits 2 s for its host and 1 s for
// others: 7 s at 100 W and 3 s at 20 W are 760 J; the other one idles: 200 J. Both are rented.
TEST(Expense, CountsDevicesThatTheStepDoesNotUse) {
  const Small small = small_cluster("", "");
  const sim::Expense expense = expense_of(ten_seconds(), small.cluster, small.config);
  EXPECT_EQ(expense.unused, 1);
  EXPECT_NEAR(expense.energy->in_base(), 960, 1e-9);
  EXPECT_NEAR(expense.rent->in_base(), 2 * 10 * 0.001, 1e-12);
  EXPECT_THAT(expense.without_host_power, ElementsAre("L40S"));
}

// The same with shares of the 80 W above idle: 4 s of compute are divided 3 : 1 : 1 among products
// (all of it), attention (a half) and passes (a quarter), 0.75 of it on average; 3 s communicate at
// a half, 3 s wait at a tenth. The busy device takes 200 J + 80 W x (3 + 1.5 + 0.3) s = 584 J.
TEST(Expense, FollowsWhatDevicesDo) {
  const Small small = small_cluster(
      "    draw: {attention: 0.5, passes: 0.25, communication: 0.5, waiting: 0.1}\n", "");
  const sim::Expense expense = expense_of(ten_seconds(), small.cluster, small.config);
  EXPECT_NEAR(expense.parts.devices.in_base(), 584 + 200, 1e-9);
}

// Hosts of 50 W for each of two devices are 1,000 J, 30 W of storage 300 J; a site that draws half
// as much again as 960 + 1,300 J adds 1,130 J. There is no switch to draw anything.
TEST(Expense, CountsWhatIsAroundTheDevices) {
  const Small small = small_cluster("",
                                    "  host_power: 50 W\n"
                                    "switch_power: 700 W\nother_power: 30 W\npue: 1.5\n");
  const sim::Expense expense = expense_of(ten_seconds(), small.cluster, small.config);
  EXPECT_NEAR(expense.parts.hosts.in_base(), 1000, 1e-9);
  EXPECT_NEAR(expense.parts.network.in_base(), 0, 1e-9);
  EXPECT_NEAR(expense.parts.other.in_base(), 300, 1e-9);
  EXPECT_NEAR(expense.parts.cooling.in_base(), 1130, 1e-9);
  EXPECT_NEAR(expense.energy->in_base(), 3390, 1e-9);
  EXPECT_THAT(expense.without_host_power, IsEmpty());
}

// Two DGX on one switch of 700 W.
TEST(Expense, CountsSwitches) {
  const TemporaryFolder folder;
  const auto file = folder.write(
      "two.yaml",
      "cluster: {nodes: 2, node: dgx-a100-80gb, fabric: {kind: single-switch}, switch_power: 700 "
      "W}\n"
      "model: {name: small, layers: 8, hidden: 1024, heads: 16, vocabulary: 1000, sequence: 512}\n"
      "strategy: {data_parallel: 16, global_batch: 16}\n");
  const sim::Prediction p = run(file).prediction;
  EXPECT_NEAR(p.expense.parts.network.in_base(), 700 * p.step.in_base(), 1e-9);
}

TEST(TrainingLength, IsANumberAndWhatItCounts) {
  const auto amount = [](std::string_view text) {
    const auto length = parse_training_length(text);
    return length ? length->amount : -1;
  };
  EXPECT_EQ(amount("2T tokens"), 2e12);
  EXPECT_EQ(amount("300 B tokens"), 300e9);
  EXPECT_EQ(amount("1.5e6 tokens"), 1.5e6);
  EXPECT_EQ(amount("90k images"), 90e3);
  EXPECT_TRUE(parse_training_length("2 tokens")->tokens);
  EXPECT_FALSE(parse_training_length("1.2M samples")->tokens);
  for (const char* text : {"", "2T", "tokens", "-1 tokens", "2 X tokens", "2T epochs", "inf tokens",
                           "0 tokens", "2T tokens more"})
    EXPECT_EQ(amount(text), -1) << text;
  EXPECT_THAT(parse_training_length("2T").error().message, HasSubstr("for example 2T tokens"));
}

TEST(TrainingLength, MustFitTheStudy) {
  const TemporaryFolder folder;
  const auto fault = [&](const std::string& lines) {
    return message_of(load_study({.study = folder.write("one.yaml", kOne + lines)}, kCatalogue));
  };
  EXPECT_EQ(fault("train: 2T tokens\n"), "accepted");
  EXPECT_EQ(fault("train: 1M sequences\n"), "accepted");
  EXPECT_THAT(fault("train: 90k images\n"),
              AllOf(HasSubstr("one.yaml:4:8: error: a sample here is a sequence, so no images"),
                    HasSubstr("count samples or sequences")));
  EXPECT_THAT(fault("train: 2T\n"), HasSubstr("one.yaml:4:8: error: '2T' is no length"));
  const auto file = folder.write("one.yaml", std::string(kOne) + "train: 1M samples\n");
  EXPECT_THAT(
      message_of(load_study({.study = file}, {.catalogue = kCatalogue.catalogue,
                                              .overrides = {{"strategy.mode", "forward"}}})),
      HasSubstr("mode: forward trains nothing"));
}

}  // namespace foreshard::study::expense_test
