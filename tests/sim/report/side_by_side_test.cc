// Two predictions side by side, from the JSON that reports write.
#include "sim/report/side_by_side.h"

#include <nlohmann/json.hpp>

#include "tests/sim/report/example.h"
#include "tests/test.h"

#include "sim/report/json.h"

namespace foreshard::report {
namespace {

Outcome example_outcome(Seconds step, Seconds tensor) {
  Report report = example_report();
  report.prediction.step = step;
  report.prediction.breakdown.tensor = tensor;
  return value_of(read_outcome(to_json(report)));
}

TEST(SideBySide, ReadsWhatAPredictionSays) {
  const Outcome outcome = example_outcome(8_s, 3_s);
  EXPECT_EQ(outcome.figure("step"), 8);
  EXPECT_EQ(outcome.figure("cost of a step"), 0.0444);
  EXPECT_EQ(outcome.figure("CO2 of a step"), std::nullopt);
  EXPECT_EQ(outcome.figure("no such figure"), std::nullopt);
  EXPECT_THAT(outcome.breakdown, testing::Contains(testing::Pair("tp_comm", 3_s)));
}

// Of three changes the one that moves the step most comes first, the one that is no step last.
TEST(SideBySide, OrdersByEffect) {
  SideBySide sides{example_outcome(10_s, 3_s), example_outcome(8_s, 1_s), {}, {}};
  sides.changes = {{"z", "1", "2", std::nullopt}, {"a", "1", "2", 9.5_s}, {"b", "1", "2", 8_s}};
  sort_by_effect(sides);
  EXPECT_EQ(sides.changes[0].key, "b");
  EXPECT_EQ(sides.changes[1].key, "a");
  EXPECT_EQ(sides.changes[2].key, "z");
  const std::string text = to_text(sides);
  EXPECT_THAT(text, HasSubstr("-20.0 %"));
  EXPECT_LT(text.find("\n  tensor comm."), text.find("\n  compute")) << "what differs is first";
  EXPECT_THAT(to_json(sides), HasSubstr("\"step_of_a_with_it_s\": 8.0"));
}

// Steps of 10 and 19 s: with twice the batch, the second one is faster by the token.
TEST(SideBySide, BeginsWithAVerdict) {
  const auto side = [](double step, double batch, double usd, double bytes) {
    Outcome outcome;
    outcome.figures = {{"step", "s", step},
                       {"tokens", "1/s", 100 * batch / step},
                       {"samples", "1/s", batch / step},
                       {"peak memory", "B", bytes},
                       {"cost of a step", "USD", usd}};
    return outcome;
  };
  const auto verdict = [](const Outcome& a, const Outcome& b) {
    return nlohmann::json::parse(to_json(SideBySide{a, b, {}, {}}))["verdict"].get<std::string>();
  };
  const Outcome first = side(10, 4, 1, 100);
  EXPECT_EQ(verdict(first, first), "A and B take the same time.");
  EXPECT_EQ(verdict(first, side(10, 4, 2, 90)),
            "A and B take the same time; B costs 100.0 % more, needs 10.0 % less memory.");
  EXPECT_EQ(verdict(first, side(12, 4, 1, 100)), "B is 20.0 % slower.");
  EXPECT_EQ(verdict(first, side(19, 8, 1.9, 150)),
            "By the token, B is 5.0 % faster, costs 5.0 % less, needs 50.0 % more memory.");
  EXPECT_EQ(verdict(first, side(20, 8, 2, 100)), "By the token, A and B take the same time.");
  Outcome too_large = side(5, 4, 1, 1000);
  too_large.feasible = false;
  EXPECT_EQ(verdict(first, too_large), "A runs, B does not.");
}

TEST(SideBySide, TellsWhereBothAreTheSame) {
  SideBySide sides{example_outcome(10_s, 3_s), example_outcome(8_s, 1_s), {}, {}};
  sides.crossing = Crossing{"cluster.rent", "usd", "1 USD/h", "4 USD/h", "2.5 USD/h", {}, ""};
  EXPECT_THAT(to_text(sides), HasSubstr("cluster.rent = 2.5 USD/h of B"));
  sides.crossing = Crossing{"cluster.rent", "usd", "1 USD/h", "4 USD/h", std::nullopt, {}, "A"};
  EXPECT_THAT(to_text(sides), HasSubstr("Nowhere: A has less from cluster.rent = 1 USD/h"));
}

TEST(SideBySide, RefusesWhatIsNoPrediction) {
  const auto fault = [](const char* text) { return read_outcome(text).error().message; };
  EXPECT_THAT(fault("not JSON"), HasSubstr("no JSON: line 1, column 2: invalid literal"));
  EXPECT_THAT(fault("[]"), HasSubstr("no JSON object"));
  EXPECT_THAT(fault("{}"), HasSubstr("its schema is ''"));
  EXPECT_THAT(fault(R"({"schema": "foreshard.search/1"})"), HasSubstr("simulate STUDY.yaml"));
  EXPECT_THAT(fault(R"({"schema": "foreshard.prediction/1"})"), HasSubstr("no breakdown_s"));
  EXPECT_THAT(fault(R"({"schema": "foreshard.prediction/1", "breakdown_s": {"compute": "x"}})"),
              HasSubstr("breakdown_s.compute is no number"));
}

}  // namespace
}  // namespace foreshard::report
