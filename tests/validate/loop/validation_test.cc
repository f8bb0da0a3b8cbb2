#include "validate/loop/validation.h"

#include <nlohmann/json.hpp>

#include "tests/test.h"

namespace foreshard::loop {
namespace {

compare::Comparison comparison(Seconds predicted, Seconds measured, double spread) {
  compare::Comparison out;
  out.step = {predicted, measured};
  out.low = (1 - spread / 2) * measured;
  out.high = (1 + spread / 2) * measured;
  out.spread = spread;
  out.repeats = 10;
  out.residuals.push_back({.name = "adam", .booked = {0.1_s, 0.2_s}, .share_of_error = 0.5});
  return out;
}

Validation two() {
  Validation out{.machine = "a host", .calibrated = "out/calibrated"};
  out.studies.push_back({"dp2", false, comparison(0.5_s, 1_s, 0.01), comparison(1_s, 1_s, 0.01)});
  out.studies.push_back({"tp2", true, comparison(2_s, 1_s, 0.01), comparison(1.2_s, 1_s, 0.01)});
  return out;
}

TEST(Validation, AllowsTwiceTheSpread) {
  EXPECT_DOUBLE_EQ(allowance(comparison(1_s, 1_s, 0.02), 0.15), 0.15);
  EXPECT_DOUBLE_EQ(allowance(comparison(1_s, 1_s, 0.2), 0.15), 0.4);
}

// tp2 is 20 % off after calibration.
TEST(Validation, NamesWhatIsBeyondTheLimit) {
  Validation validation = two();
  EXPECT_THAT(beyond(validation, 0.25), IsEmpty());
  EXPECT_THAT(beyond(validation, 0.15), ElementsAre("tp2"));
  validation.studies[1].after->spread = 0.11;
  EXPECT_THAT(beyond(validation, 0.15), IsEmpty());
  validation.studies[1].after.reset();  // then the prediction before counts
  EXPECT_THAT(beyond(validation, 0.25), ElementsAre("tp2"));
}

TEST(Validation, WritesTextAndJson) {
  const std::string text = to_text(two());
  EXPECT_THAT(text, HasSubstr("measured on a host"));
  EXPECT_THAT(text, HasSubstr("calibrated on"));
  EXPECT_THAT(text, HasSubstr("blind"));
  EXPECT_THAT(text, HasSubstr("adam: booked 100 ms predicted, 200 ms measured (+50.0 %)"));
  const auto json = nlohmann::json::parse(to_json(two()));
  EXPECT_EQ(json["schema"], "foreshard.validation/1");
  EXPECT_EQ(json["studies"][1]["blind"], true);
  EXPECT_DOUBLE_EQ(json["studies"][1]["after"]["error_pct"].get<double>(), 20);
}

}  // namespace
}  // namespace foreshard::loop
