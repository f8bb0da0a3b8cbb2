// What reports say of disturbances, and of a step that never ends.
#include "sim/report/internal/disturbed.h"

#include <nlohmann/json.hpp>

#include "tests/sim/report/example.h"
#include "tests/test.h"

#include "sim/report/csv.h"
#include "sim/report/json.h"
#include "sim/report/numbers.h"
#include "sim/report/text.h"
#include "sim/report/trace.h"

namespace foreshard::report {
namespace {

Report disturbed() {
  Report report = example_report();
  report.prediction.disturbances = sim::DisturbanceSummary{
      .seed = 7,
      .hits = {{.kind = "straggler",
                .effect = "50 % of the speed",
                .count = 4,
                .who = {"node0/gpu0", "node0/gpu1", "node1/gpu0", "node1/gpu1"}},
               {.kind = "failure",
                .effect = "what uses it is rerouted",
                .at = 4_s,
                .until = 20_s,
                .count = 1,
                .who = {"spine1"}}},
      .steps = {12_s, 10_s, 9_s, 11_s},
      .interrupted = 1};
  return report;
}

Report interrupted() {
  Report report = disturbed();
  report.prediction.interruption = sim::Interruption{.at = 5_s, .failed = {}, .waiting = {}};
  const NamedTask send{.who = "rank 0 (stage 0)", .what = "forward / send", .layer = 2};
  const NamedTask receive{.who = "rank 4 (stage 1)", .what = "forward / receive"};
  report.interruption = InterruptionReport{
      .at = 5_s,
      .failed = {{.task = send, .start = 3_s, .at = 5_s, .on = "node0/nic0 -> leaf0"}},
      .waiting = {{.task = receive, .count = 4, .since = 1_s, .waits_for = send, .failed = true}},
      .unfinished = 17};
  return report;
}

TEST(DisturbedReport, TellsWhoWasHit) {
  const std::string text = to_text(disturbed());
  EXPECT_THAT(text, HasSubstr("seed 7"));
  EXPECT_THAT(text, HasSubstr("straggler node0/gpu0, node0/gpu1, node1/gpu0 and 1 more: 50 % of"));
  EXPECT_THAT(text, HasSubstr("failure spine1: what uses it is rerouted, 4.00 s to 20.0 s"));
  EXPECT_THAT(text, HasSubstr("5 seeds, with 1 of which the step never ends"));
  const auto json = nlohmann::json::parse(to_json(disturbed()))["disturbances"];
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["events"].size(), 2u);
  EXPECT_EQ(json["events"][0]["until_s"], nullptr);
  EXPECT_EQ(json["events"][0]["who"].size(), 4u);
  EXPECT_EQ(json["runs"]["p50_s"], 10);
  EXPECT_EQ(json["runs"]["p95_s"], 12);
  EXPECT_EQ(json["runs"]["mean_s"], 10.5);
  EXPECT_THAT(to_json(example_report()), Not(HasSubstr("disturbances")));
}

TEST(DisturbedReport, TellsWhoWaitsForWhom) {
  const std::string text = to_text(interrupted(), {.width = 80});
  EXPECT_THAT(text, HasSubstr("step time  never"));
  EXPECT_THAT(text, HasSubstr("on node0/nic0 -> leaf0"));
  EXPECT_THAT(text, HasSubstr("rank 4 (stage 1) and 3 like it: forward / receive waits for"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns(line), 80U) << line;
  const auto json = nlohmann::json::parse(to_json(interrupted()));
  EXPECT_EQ(json["step"]["time_s"], nullptr);
  EXPECT_EQ(json["interruption"]["at_s"], 5);
  EXPECT_EQ(json["interruption"]["failed"][0]["on"], "node0/nic0 -> leaf0");
  EXPECT_EQ(json["interruption"]["waiting"][0]["waits_for"]["what"], "forward / send");
  EXPECT_EQ(json["interruption"]["unfinished_tasks"], 17);
  EXPECT_THAT(to_csv(interrupted()), HasSubstr("inf"));
}

TEST(DisturbedReport, TheTraceShowsWhenItHappened) {
  const auto path = std::filesystem::temp_directory_path() / "foreshard_disturbed_trace.json";
  ASSERT_TRUE(write_trace(path, disturbed().prediction, example_program()).ok());
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  std::filesystem::remove(path);
  int shown = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] != "X" || event["cat"] != "disturbance") continue;
    ++shown;
    EXPECT_EQ(event["pid"], 2);  // after the classes
    if (event["args"]["who"] == "spine1") {
      EXPECT_EQ(event["ts"], 4e6);
      EXPECT_EQ(event["dur"], 6e6);  // the step is over after 10 s
    }
  }
  EXPECT_EQ(shown, 2);
}

TEST(DisturbedReport, RanksAreTheNearest) {
  std::vector<Seconds> steps;
  for (int i = 100; i > 0; --i) steps.push_back(1_s * i);
  const StepStatistics s = statistics_of(steps);
  EXPECT_EQ(s.median, 50_s);
  EXPECT_EQ(s.p95, 95_s);
  EXPECT_EQ(s.lowest, 1_s);
  EXPECT_EQ(s.highest, 100_s);
  EXPECT_EQ(statistics_of({3_s}).p95, 3_s);
}

}  // namespace
}  // namespace foreshard::report
