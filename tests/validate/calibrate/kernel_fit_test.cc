// Products of an H200 whose numbers are known: which of them the measured products give back.
#include "validate/calibrate/kernel_fit.h"

#include "base/check.h"
#include "tests/test.h"

#include "sim/compute/operator_time.h"
#include "validate/calibrate/log_fit.h"
#include "validate/calibrate/plan.h"

namespace foreshard::calibrate {
namespace {

DeviceType h200() {
  auto device = yaml::Loader(shipped_options()).read_ref<DeviceType>("H200-SXM");
  FORESHARD_CHECK(device);
  return *std::move(device);
}

// All that a GPT of 1.3 and a Llama of 8 billion parameters multiply, 8192 tokens at a time.
std::vector<Gemm> of_training_steps() {
  std::vector<Gemm> products;
  for (const auto& [in, out] : std::vector<std::pair<std::int64_t, std::int64_t>>{{2048, 6144},
                                                                                  {2048, 2048},
                                                                                  {2048, 8192},
                                                                                  {8192, 2048},
                                                                                  {4096, 6144},
                                                                                  {4096, 4096},
                                                                                  {4096, 28672},
                                                                                  {14336, 4096}}) {
    products.push_back({.m = 8192, .n = out, .k = in});
    products.push_back({.m = 8192, .n = in, .k = out});
    products.push_back({.m = in, .n = out, .k = 8192, .accumulate = true});
  }
  return products;
}

// An H200 whose numbers all differ from the catalogue's.
DeviceType another() {
  DeviceType device = h200();
  GemmEfficiency& gemm = device.efficiency.value.gemm;
  gemm.rate_of["bf16"] = 0.72;
  gemm.streaming = 0.9;
  gemm.operand_rate = 90_GB_s;
  gemm.tile_overhead = 1.8_us;
  gemm.floor = 3.5_us;
  gemm.split_overhead = 4.5_us;
  gemm.split_traffic = 0.6;
  return device;
}

// What products take there, each 2 % off at random.
std::vector<KernelSample> measured_on(const DeviceType& device, const std::vector<Gemm>& products) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  std::vector<KernelSample> samples;
  for (const Gemm& product : products) {
    const Seconds time = std::exp(0.02 * normal(random)) * model_time_of(product, device).total();
    samples.push_back({product, "cublas", {.median = time, .low = time, .high = time}});
  }
  return samples;
}

KernelFit fit_of(const DeviceType& start, const std::vector<Gemm>& products) {
  auto fit = fit_kernels(start, measured_on(another(), products),
                         {.source = "a test", .source_of_each = "a test"});
  FORESHARD_CHECK(fit);
  return *std::move(fit);
}

std::vector<Gemm> with_telling(std::vector<Gemm> products) {
  for (const Gemm& gemm : informative_products(
           h200(), products, [](const Gemm& one) { return bytes_of(one) <= 1_GiB; }))
    products.push_back(gemm);
  return products;
}

// Beside small products six of seven come back. The seventh, what split sums take of the memory,
// decides no product: the model splits k only where few tiles are busy, and there it waits for the
// 4.5 us of adding the parts.
TEST(KernelFit, RecoversNumbersThatProductsTell) {
  const KernelFit fit = fit_of(h200(), with_telling(of_training_steps()));
  const GemmEfficiency& found = fit.device.efficiency->gemm;
  const GemmEfficiency truth = another().efficiency->gemm;
  EXPECT_NEAR(found.rate_of.at("bf16") / 0.72, 1, 0.02);
  EXPECT_NEAR(found.streaming / truth.streaming, 1, 0.03);
  EXPECT_NEAR(found.operand_rate / truth.operand_rate, 1, 0.05);
  EXPECT_NEAR(found.tile_overhead / truth.tile_overhead, 1, 0.1);
  EXPECT_NEAR(found.floor / truth.floor, 1, 0.1);
  EXPECT_NEAR(found.split_overhead / truth.split_overhead, 1, 0.05);
  EXPECT_EQ(found.split_traffic, h200().efficiency->gemm.split_traffic);
  ASSERT_EQ(fit.values.size(), 7U);
  for (const FittedValue& value : fit.values)
    EXPECT_EQ(value.kept.empty(), value.name != "gemm.split_traffic") << value.name;
  EXPECT_LT(fit.after.median, 0.02);
}

// Of products of 2048 rows and more on this device nearly all is arithmetic: a tile of 256 x 128
// takes 48 us for k = 4096, of which its overhead is 1.1 us, and its operands, 26 us, are hidden.
TEST(KernelFit, KeepsNumbersThatProductsDoNotTell) {
  const DeviceType start = h200();
  const KernelFit fit = fit_of(start, of_training_steps());
  const GemmEfficiency& before = start.efficiency->gemm;
  const GemmEfficiency& after = fit.device.efficiency->gemm;
  EXPECT_NEAR(after.rate_of.at("bf16") / 0.72, 1, 0.05);
  EXPECT_EQ(after.streaming, before.streaming);
  EXPECT_EQ(after.operand_rate, before.operand_rate);
  EXPECT_EQ(after.tile_overhead, before.tile_overhead);
  EXPECT_EQ(after.floor, before.floor);
  EXPECT_EQ(after.split_overhead, before.split_overhead);
  EXPECT_EQ(after.split_traffic, before.split_traffic);
  ASSERT_EQ(fit.values.size(), 7U);
  EXPECT_EQ(fit.values[0].kept, "");
  EXPECT_LE(fit.values[0].low, 0.72);
  EXPECT_GE(fit.values[0].high, 0.72);
  for (std::size_t i = 1; i < fit.values.size(); ++i)
    EXPECT_THAT(fit.values[i].kept, HasSubstr("does not tell")) << fit.values[i].name;
  // The file says so beside the source, and where these come from.
  EXPECT_THAT(after.fit.source,
              HasSubstr("a test; as before, not told by it: streaming, operand_rate, "
                        "tile_overhead, floor, split_overhead, split_traffic (aiconfigurator"));
  EXPECT_EQ(after.fit.evidence, yaml::Evidence::kFitted);
}

// Nothing but what the file is worth: on the device on which it was fitted its numbers give way
// later than where they were assumed.
TEST(KernelFit, WeighsTheStartByItsEvidence) {
  const std::vector<Gemm> one{{.m = 8192, .n = 8192, .k = 8192}};
  DeviceType start = h200();
  start.efficiency.value.gemm.rate_of["bf16"] = 0.8;
  const auto rate_after = [&](yaml::Evidence evidence, std::vector<std::string> measured_on) {
    start.efficiency.value.gemm.fit.evidence = evidence;
    start.efficiency.value.measured_on = std::move(measured_on);
    return fit_of(start, one).device.efficiency->gemm.rate_of.at("bf16");
  };
  const double here = rate_after(yaml::Evidence::kFitted, {"H200-SXM"});
  const double relative = rate_after(yaml::Evidence::kFitted, {"H100-SXM"});
  const double assumed = rate_after(yaml::Evidence::kUser, {});
  EXPECT_EQ(relative, rate_after(yaml::Evidence::kTransferred, {"H200-SXM"}));
  EXPECT_LT(here, 0.8);
  EXPECT_LT(relative, here);
  EXPECT_LT(assumed, relative);
}

// One number of spread 0.3, one row in proportion to it: 1 / (1 / 0.3^2 + 1 / 0.05^2) = 0.0493^2.
// Of two numbers that only occur as a product, each keeps half of its variance.
TEST(Knowledge, IsNarrowedByRows) {
  Knowledge one(
      std::vector<LogNumber>{{.name = "a", .value = 1, .low = 0.1, .high = 10, .spread = 0.3}});
  EXPECT_DOUBLE_EQ(one.deviation(0), 0.3);
  const double left = 1 / (1 / 0.09 + 1 / 0.0025);
  EXPECT_NEAR(one.narrowed_by({1}, 0), 1 - left / 0.09, 1e-12);
  one.add({1});
  EXPECT_NEAR(one.deviation(0), std::sqrt(left), 1e-12);

  const LogNumber number{.name = "a", .value = 1, .low = 0.1, .high = 10, .spread = 1};
  Knowledge two(std::vector<LogNumber>{number, number});
  for (int row = 0; row < 1000; ++row) two.add({1, 1});
  EXPECT_NEAR(two.deviation(0), std::sqrt(0.5), 1e-4);
  EXPECT_NEAR(two.deviation(1), std::sqrt(0.5), 1e-4);
  two.add({1, 0});
  EXPECT_LT(two.deviation(1), 0.06);
}

// a b is measured, and b: a is told by both together, c by nothing.
TEST(LogFit, MovesWhatTheDataTell) {
  double a = 1;
  double b = 1;
  double c = 0.7;
  const auto number = [](const char* name, double& place) {
    return LogNumber{.name = name,
                     .value = place,
                     .set = [&place](double value) { place = value; },
                     .low = 1e-3,
                     .high = 1e3,
                     .spread = 1};
  };
  const auto values =
      fit_logarithms({number("a", a), number("b", b), number("c", c)},
                     [&](std::size_t row) { return row == 0 ? a * b : b; }, {6.0, 2.0});
  EXPECT_NEAR(a, 3, 0.05);
  EXPECT_NEAR(b, 2, 0.05);
  EXPECT_EQ(c, 0.7);
  EXPECT_EQ(values[0].kept, "");
  EXPECT_NE(values[2].kept, "");
}

}  // namespace
}  // namespace foreshard::calibrate
