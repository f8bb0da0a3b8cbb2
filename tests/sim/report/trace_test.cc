#include "sim/report/trace.h"

#include <nlohmann/json.hpp>
#include <rapidcheck.h>

#include "tests/base/temporary_folder.h"
#include "tests/sim/report/example.h"
#include "tests/test.h"

#include "sim/study/run.h"

namespace foreshard::report {
namespace {

nlohmann::json trace_of(const sim::Prediction& prediction, const program::Program& program) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "trace.json";
  EXPECT_EQ(message_of(write_trace(path, prediction, program)), "accepted");
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

// Slices that begin before the one before them on their track has ended, in whole nanoseconds, as
// viewers count.
int overlaps(const nlohmann::json& trace) {
  std::map<std::pair<int, int>, std::vector<std::pair<std::int64_t, std::int64_t>>> tracks;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const auto start = std::llround(event["ts"].get<double>() * 1000);
    const auto length = std::llround(event["dur"].get<double>() * 1000);
    tracks[{event["pid"], event["tid"]}].emplace_back(start, start + length);
  }
  int count = 0;
  for (auto& [track, slices] : tracks) {
    std::ranges::sort(slices);
    for (std::size_t i = 1; i < slices.size(); ++i)
      if (slices[i].first < slices[i - 1].second) ++count;
  }
  return count;
}

TEST(Trace, HasAProcessPerClassAThreadPerStreamAndAnEventPerTask) {
  sim::Prediction prediction = example_report().prediction;
  sim::TimelineEntry first{.device_class = 1,
                           .stream = 0,
                           .block = 0,
                           .task = 0,
                           .layer = 3,
                           .chunk = 0,
                           .micro_batch = 2,
                           .start = 1_ms,
                           .finish = 3_ms};
  sim::TimelineEntry second = first;
  second.stream = second.task = 1;
  second.start = 3_ms, second.finish = 3.5_ms;
  prediction.timeline = {first, second};
  const auto json = trace_of(prediction, example_program());
  int tasks = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++tasks;
    EXPECT_EQ(event["pid"], 1);
    EXPECT_EQ(event["args"]["layer"], 3);
  }
  EXPECT_EQ(tasks, 2);
  EXPECT_EQ(json["traceEvents"][0]["args"]["name"], "stage 0: rank 0 and 3 like it");
}

TEST(Trace, LeavesNothingWhereItCannotWrite) {
  EXPECT_THAT(message_of(write_trace("/nonexistent/trace.json", {}, example_program())),
              HasSubstr("/nonexistent/trace.json"));
}

// 0.4 ns to 1.6 ns, then 1.6 ns to 2.8 ns. The first begins at 0 and ends at 2; rounded apart, its
// length of 1.2 ns would be 1. The second lasts from 2 to 3: 1 ns.
TEST(Trace, RoundsBothEndsOfASlice) {
  sim::Prediction prediction = example_report().prediction;
  prediction.timeline = {{.start = 0.4_ns, .finish = 1.6_ns}, {.start = 1.6_ns, .finish = 2.8_ns}};
  const auto json = trace_of(prediction, example_program());
  std::vector<std::pair<double, double>> slices;
  for (const auto& event : json["traceEvents"])
    if (event["ph"] == "X") slices.emplace_back(event["ts"], event["dur"]);
  EXPECT_THAT(slices, ElementsAre(std::pair(0.0, 0.002), std::pair(0.002, 0.001)));
}

TEST(Trace, SlicesThatFollowEachOtherDoNotOverlap) {
  EXPECT_TRUE(rc::check([] {
    sim::Prediction prediction = example_report().prediction;
    Seconds now = 1_us * *rc::gen::inRange(0, 1'000'000);
    const auto lengths = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 9999));
    for (const int picoseconds : lengths) {
      const Seconds end = now + 1e-3_ns * picoseconds;
      prediction.timeline.push_back({.start = now, .finish = end});
      now = end;
    }
    RC_ASSERT(overlaps(trace_of(prediction, example_program())) == 0);
  }));
}

// Tasks on several streams, and disturbances that last at the same time.
TEST(Trace, NoTwoSlicesOfATrackOverlap) {
  const auto study = value_of(study::load_study(
      {.study = FORESHARD_SOURCE_DIR "/configs/studies/gpt-39.1b-a100-64-disturbed.yaml"},
      shipped_options()));
  const auto run = value_of(study::run_study(study, {.timeline = true}));
  EXPECT_EQ(overlaps(trace_of(run.prediction, run.program)), 0);
}

}  // namespace
}  // namespace foreshard::report
