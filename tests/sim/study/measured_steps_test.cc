// Percentiles of measured steps by hand, as properties, and of the catalogue.
#include "sim/study/measured_steps.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/test.h"

#include "sim/study/interval.h"

namespace foreshard::study::measured_steps_test {

constexpr StepWeights kWeights{.framework = 0.1,
                               .family = 0.5,
                               .device = 0.1,
                               .generation = 0.5,
                               .precision = 0.5,
                               .model = 0.5,
                               .trained = 0.5,
                               .devices = 0.5};

StepKind kind(const std::string& framework, const std::string& device) {
  return {framework, "family", device, "generation", "bf16", "dense", "all parameters", "up to 8"};
}

MeasuredStepGroup group(const std::string& source, const StepKind& of, std::vector<double> ratios) {
  return {source, of, std::ssize(ratios), std::move(ratios)};
}

std::vector<double> ten(double ratio) {
  return std::vector<double>(10, ratio);
}

// Two sources of ten steps: those of the same framework weigh ten times as much, so that all of
// the middle 80 % is theirs.
TEST(MeasuredSteps, WeighTheMoreTheMoreTheyHaveInCommon) {
  const std::vector<MeasuredStepGroup> groups{group("a", kind("one", "X"), ten(1.1)),
                                              group("b", kind("two", "X"), ten(2))};
  const StepErrors of_one = errors_of(kind("one", "X"), groups, kWeights);
  EXPECT_DOUBLE_EQ(of_one.low, 1.1);
  EXPECT_DOUBLE_EQ(of_one.high, 1.1);
  EXPECT_EQ(of_one.alike, 10);
  const StepErrors of_two = errors_of(kind("two", "X"), groups, kWeights);
  EXPECT_DOUBLE_EQ(of_two.low, 2);
  // A third framework has as much in common with both.
  const StepErrors of_three = errors_of(kind("three", "X"), groups, kWeights);
  EXPECT_DOUBLE_EQ(of_three.low, 1.1);
  EXPECT_DOUBLE_EQ(of_three.high, 2);
  EXPECT_EQ(of_three.alike, 0);
  EXPECT_THAT(of_three.unlike, ElementsAre("framework"));
}

// One step of the very kind weighs an eighth of a full source, which is more than a source that
// differs in framework and device has (a hundredth) and less than one that shares all.
TEST(MeasuredSteps, OfOneRowTellLittle) {
  const std::vector<MeasuredStepGroup> groups{group("a", kind("one", "X"), {1.5}),
                                              group("b", kind("one", "X"), ten(1)),
                                              group("c", kind("two", "Y"), ten(3))};
  const StepErrors errors = errors_of(kind("one", "X"), groups, kWeights);
  EXPECT_DOUBLE_EQ(errors.low, 1);
  EXPECT_DOUBLE_EQ(errors.high, 1.5);  // 1 / 9 of the weight lies at 1.5, and 1 / 114 above
}

TEST(MeasuredSteps, OfOneSourceCanBeLeftOut) {
  const std::vector<MeasuredStepGroup> groups{group("a", kind("one", "X"), ten(1.1)),
                                              group("b", kind("two", "Y"), ten(2))};
  const StepErrors blind = errors_of(kind("one", "X"), groups, kWeights, "a");
  EXPECT_DOUBLE_EQ(blind.low, 2);
  EXPECT_EQ(blind.alike, 0);
  EXPECT_THAT(blind.unlike, ElementsAre("framework", "device"));
}

// What a source has in many rows weighs no more than what another one has in as many as count.
RC_GTEST_PROP(MeasuredSteps, SourcesWeighTheSame, ()) {
  const int rows = *rc::gen::inRange(8, 200);
  const std::vector<MeasuredStepGroup> groups{
      group("a", kind("one", "X"), std::vector<double>(static_cast<std::size_t>(rows), 1.25)),
      group("b", kind("one", "X"), std::vector<double>(8, 1.5))};
  const StepErrors errors = errors_of(kind("one", "X"), groups, kWeights);
  RC_ASSERT(std::abs(errors.low - 1.25) < 1e-12);
  RC_ASSERT(std::abs(errors.high - 1.5) < 1e-12);
}

RC_GTEST_PROP(MeasuredSteps, CollectedKeepTheirQuantiles, ()) {
  const auto ratios = *rc::gen::container<std::vector<double>>(
      rc::gen::map(rc::gen::inRange(50, 200), [](int x) { return x / 100.0; }));
  RC_PRE(!ratios.empty());
  MeasuredStepCollector collector;
  for (const double ratio : ratios) collector.add("a", kind("one", "X"), ratio);
  const MeasuredSteps steps = collector.collected();
  RC_ASSERT(steps.groups.size() == 1U);
  const auto& group = steps.groups.front();
  RC_ASSERT(group.steps == std::ssize(ratios));
  RC_ASSERT(group.ratios.size() == std::min(ratios.size(), MeasuredStepCollector::kRatios));
  RC_ASSERT(std::ranges::is_sorted(group.ratios));
  for (const double ratio : group.ratios)
    RC_ASSERT(std::ranges::find(ratios, ratio) != ratios.end());
}

// A property that is listed in neither place would be ignored.
TEST(MeasuredSteps, EveryPropertyHasAWeight) {
  for (const StepProperty& property : step_properties()) {
    StepKind other = kind("one", "X");
    other.*property.value = "other";
    const std::vector<MeasuredStepGroup> groups{group("a", kind("one", "X"), ten(1.1)),
                                                group("b", other, ten(2))};
    EXPECT_EQ(errors_of(other, groups, kWeights).alike, 10) << property.key;
    EXPECT_THAT(errors_of(other, {groups.data(), 1}, kWeights).unlike,
                ElementsAre(std::string(property.key)));
  }
}

// The catalogue: steps like many that were measured are known better than those of a new framework
// on a new device.
TEST(MeasuredSteps, OfTheCatalogueAreWiderWhereNobodyMeasured) {
  yaml::Loader loader(shipped_options());
  const auto steps = value_of(loader.read_ref<MeasuredSteps>(kPublicSteps));
  const auto weights = value_of(read_parameter_errors(loader)).step_weights;
  const StepKind known{"nemo", "megatron", "H100-SXM",       "Hopper",
                       "fp8",  "dense",    "all parameters", "up to 128"};
  StepKind unknown = known;
  unknown.framework = unknown.family = "mine";
  unknown.device = "Z900";
  unknown.generation = "Z";
  const StepErrors narrow = errors_of(known, steps.groups, weights);
  const StepErrors wide = errors_of(unknown, steps.groups, weights);
  EXPECT_GT(narrow.alike, 20);
  EXPECT_GT(wide.high / wide.low, 1.1 * narrow.high / narrow.low);
}

}  // namespace foreshard::study::measured_steps_test
