// What of a step nobody measured: by hand, and in words.
#include "sim/study/evidence.h"

#include <nlohmann/json.hpp>

#include "tests/test.h"

#include "sim/study/interval.h"

namespace foreshard::study {
namespace {

using yaml::Evidence;

sim::Prediction step_that_rests_on(std::vector<sim::CriticalUse> uses) {
  sim::Prediction prediction;
  prediction.step = 10_s;
  prediction.critical_uses = std::move(uses);
  return prediction;
}

sim::CriticalUse products_of(const std::string& device, Evidence evidence, Seconds time) {
  return {ParameterGroup::kProducts, device, evidence, time};
}

// Of 10 s, 6 s are from data sheets and 1 s is a relative's: 70 %. The host's 1 s is of no device.
TEST(Unmeasured, IsAPartOfTheStep) {
  const auto of =
      unmeasured_in(step_that_rests_on({products_of("X", Evidence::kDatasheet, 4_s),
                                        {ParameterGroup::kPasses, "X", Evidence::kDatasheet, 2_s},
                                        products_of("Y", Evidence::kTransferred, 1_s),
                                        products_of("Z", Evidence::kFitted, 2_s)}));
  EXPECT_DOUBLE_EQ(of.share, 0.7);
  EXPECT_EQ(of.on, "X (from data sheets), Y (a relative's)");
  EXPECT_TRUE(of.is_most());
  EXPECT_FALSE(
      unmeasured_in(step_that_rests_on({products_of("Y", Evidence::kUser, 5_s)})).is_most());
  EXPECT_EQ(unmeasured_in(step_that_rests_on({products_of("Z", Evidence::kMeasured, 10_s)})),
            Unmeasured{});
}

TEST(Unmeasured, TakesTheWarningsOfTheInterval) {
  sim::Prediction prediction = step_that_rests_on({});
  prediction.warnings = {{.code = "memory", .message = "tight"},
                         {.code = kIntervalWarning, .message = "no forward pass was measured"}};
  EXPECT_THAT(unmeasured_in(prediction).remarks, ElementsAre("no forward pass was measured"));
}

Unmeasured most(double share, const std::string& on) {
  return {.share = share, .on = on, .remarks = {share_remark(share, on)}};
}

TEST(EvidenceRemarks, SayOnceWhatSeveralStepsRestOn) {
  const Unmeasured none;
  const Unmeasured low = most(0.97, "X (from data sheets)");
  const Unmeasured high = most(0.991, "X (from data sheets)");
  const Unmeasured other = most(0.6, "Y (a relative's)");
  const Unmeasured forward{.share = 0, .on = "", .remarks = {"no forward pass was measured"}};
  const std::vector<const Unmeasured*> all{&none, &low, &high, &other, &forward};
  EXPECT_THAT(
      evidence_remarks(all, "point"),
      ElementsAre("97 to 99 % of the step of 2 of 5 points rests on parameters that were not "
                  "measured on its devices: X (from data sheets)",
                  "60 % of the step of 1 of 5 points rests on parameters that were not measured on "
                  "its devices: Y (a relative's)",
                  "1 of 5 points: no forward pass was measured"));
  const std::vector<const Unmeasured*> one{&low};
  EXPECT_THAT(evidence_remarks(one, "point"), ElementsAre(low.remarks.front()));
  const std::vector<const Unmeasured*> same{&low, &low};
  EXPECT_THAT(evidence_remarks(same, "strategy"),
              ElementsAre("97 % of the step of all 2 strategies rests on parameters that were not "
                          "measured on its devices: X (from data sheets)"));
  EXPECT_THAT(evidence_remarks({}, "point"), IsEmpty());
}

TEST(Evidence, ReadsBackAsItWasWritten) {
  const Unmeasured one = most(0.1 + 0.7, "X (the user's word)");
  EXPECT_EQ(unmeasured_in(nlohmann::ordered_json::parse(evidence_json(one).dump())), one);
}

}  // namespace
}  // namespace foreshard::study
