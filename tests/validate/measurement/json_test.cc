
#include <rapidcheck.h>

#include "tests/test.h"

#include "validate/measurement/measurement.h"

namespace foreshard::measure::json_test {

constexpr std::string_view kSmall = R"({"schema":"foreshard.measurement/1",
"program":"small",
"fingerprint":"00000000deadbeef",
"backend":"host",
"providers":{"gemm":"blas","attention":"foreshard","pass":"foreshard"},
"mode":"whole",
"shared":false,
"date":"2026-11-22T01:44:26Z",
"version":"0.1.0",
"warmup":2,
"repeats":3,
"machines":[
  {"name":"node7","facts":{"mpi":"Open MPI 4.1.4","processor":"EPYC"},"topology":"GPU0\tX"}],
"ranks":[
  {"rank":0,"machine":0,"device":"core 0","steps_s":[0.25,0.5,1],"peak_memory_bytes":1024,"scratch_bytes":64,"readings":[{"when":"before","clock_mhz":1980,"celsius":41.5}],
   "tasks":{"start_s":[0,0.125],
    "finish_s":[0.125,0.25],
    "low_s":[0.0625,0.125],
    "median_s":[0.125,0.125],
    "high_s":[0.25,0.5]}},
  {"rank":1,"machine":0,"device":"core 1","steps_s":[0.5,0.25,0.75],"peak_memory_bytes":1024,"scratch_bytes":64,"readings":[],
   "tasks":{"start_s":[],
    "finish_s":[],
    "low_s":[],
    "median_s":[],
    "high_s":[]}}]}
)";

// The format by example: what docs/replay.md shows.
TEST(MeasurementJson, LooksLikeThis) {
  const auto measurement = value_of(measurement_from_json(kSmall));
  EXPECT_EQ(to_json(measurement), kSmall);
  const RankRecord& rank = measurement.ranks[0];
  EXPECT_EQ(rank.tasks[1].high, 0.5_s);
  EXPECT_EQ(rank.readings[0].clock_mhz, 1980.0);
  EXPECT_FALSE(rank.readings[0].watts);
  // Steps of the slower rank: 0.5, 0.5, 1. The 90th percentile lies at 1.8 of 2: 0.5 + 0.8 x 0.5.
  const StepTimes step = step_of(measurement);
  EXPECT_EQ(step.median, 0.5_s);
  EXPECT_DOUBLE_EQ(step.high / 1_s, 0.9);
}

// Files from before providers were told are read as what wrote them.
TEST(MeasurementJson, KnowsWhoseKernelsOlderFilesHave) {
  std::string text(kSmall);
  const std::string_view key =
      R"("providers":{"gemm":"blas","attention":"foreshard","pass":"foreshard"},)";
  text.erase(text.find(key), key.size());
  const auto measurement = value_of(measurement_from_json(text));
  EXPECT_EQ(measurement.providers.gemm, measurement.backend == "host" ? "blas" : "cublas");
  EXPECT_EQ(measurement.providers.attention, kOwnKernels);
}

// What the device's executor adds to a rank; files without it are read as before (above).
TEST(MeasurementJson, SaysWhatTimingCostAndHowKernelsWereChosen) {
  std::string text(kSmall);
  const std::string place = R"("celsius":41.5}])";
  text.insert(
      text.find(place) + place.size(),
      R"(,"timing":{"events":4,"step_s":-0.5,"event_s":-0.125},)"
      R"("gemms":[{"kernel":"gemm a","count":3,"tried":2,"taken_s":0.5,"fastest_s":0.25}])");
  const auto measurement = value_of(measurement_from_json(text));
  EXPECT_EQ(to_json(measurement), text);
  const RankRecord& rank = measurement.ranks[0];
  EXPECT_EQ(rank.timing, (TimingCost{.events = 4, .step = -0.5_s, .event = -0.125_s}));
  ASSERT_EQ(rank.gemms.size(), 1U);
  EXPECT_EQ(rank.gemms[0].taken, 0.5_s);
  EXPECT_FALSE(measurement.ranks[1].timing);
}

// Rank 1 has the larger cost, 12 ms of 4 events, and the larger saving: 2 x (5 - 3) + 1 x 0 ms
// of 11.
TEST(MeasurementRemarks, AreOfTheRankThatItCostMost) {
  auto measurement = *measurement_from_json(kSmall);
  EXPECT_TRUE(remarks_of(measurement).empty());
  measurement.ranks[0].timing = {.events = 4, .step = -1_ms, .event = -0.25_ms};
  EXPECT_EQ(remarks_of(measurement).at(0), "the 4 events that time the tasks made no step longer");
  measurement.ranks[1].timing = {.events = 4, .step = 12_ms, .event = 3_ms};
  measurement.ranks[0].gemms = {{"a", 1, 4, 5_ms, 4_ms}};
  measurement.ranks[1].gemms = {{"a", 2, 4, 5_ms, 3_ms}, {"b", 1, 4, 1_ms, 1_ms}};
  const auto remarks = remarks_of(measurement);
  ASSERT_EQ(remarks.size(), 2U);
  EXPECT_EQ(remarks[0],
            "the 4 events that time the tasks took 12.0 ms of the step of rank 1, 3.00 ms each");
  EXPECT_EQ(
      remarks[1],
      "matrix products take cuBLASLt's first proposals, alone 11.0 ms of a step of rank 1; the "
      "fastest proposals would take 4.00 ms less");
}

// What newer files have beside that.
TEST(MeasurementJson, TellsWhatWasReadDuringTheSteps) {
  std::string text(kSmall);
  const auto put = [&](std::string_view before, std::string_view what) {
    text.insert(text.find(before), what);
  };
  put(R"(}},
  {"rank":1)",
      R"(,
    "lasted_s":[null,0.0625])");
  put(R"(,
   "tasks":{"start_s":[0)",
      R"(,"during":{"samples":9,"clock_mhz":{"low":1700,"median":1900,"high":1980},"throttle":["sw_power_cap"]})");
  text.replace(text.find(R"("celsius":41.5})"), 15, R"("celsius":41.5,"throttle":["idle"]})");
  const auto measurement = value_of(measurement_from_json(text), text);
  EXPECT_EQ(to_json(measurement), text);
  const RankRecord& rank = measurement.ranks[0];
  EXPECT_EQ(rank.tasks[0].lasted, std::nullopt);
  EXPECT_EQ(rank.tasks[1].lasted, 0.0625_s);
  EXPECT_EQ(rank.during->clock_mhz, (Span{1700, 1900, 1980}));
  EXPECT_THAT(rank.readings[0].throttle, ElementsAre("idle"));
}

std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> pieces{"a",  "Z", "\"", "\\", "\n",
                                               "\t", "é", "名", " ",  "0"};
  std::string text;
  for (auto n = random() % 6; n-- > 0;) text += pieces[random() % pieces.size()];
  return text;
}
Seconds random_time(std::mt19937& random) {
  const double whole = static_cast<double>(random() % 1000);
  if (random() % 8 == 0) return Seconds::from_base(whole);
  return Seconds::from_base(whole * std::pow(10.0, -static_cast<double>(random() % 12)) / 3);
}
std::optional<double> perhaps(std::mt19937& random) {
  if (random() % 2 == 0) return std::nullopt;
  return random_time(random) / 1_s - 100;
}

std::optional<Span> perhaps_span(std::mt19937& random) {
  if (random() % 2 == 0) return std::nullopt;
  return Span{random_time(random) / 1_s, random_time(random) / 1_s, random_time(random) / 1_s};
}
std::vector<std::string> random_texts(std::mt19937& random) {
  std::vector<std::string> texts(random() % 3);
  for (std::string& text : texts) text = random_text(random);
  return texts;
}

Measurement random_measurement(std::mt19937& random) {
  Measurement out{.program = random_text(random),
                  .fingerprint = "0123456789abcdef",
                  .backend = random_text(random),
                  .providers = {random_text(random), random_text(random), random_text(random)},
                  .mode = random() % 2 ? Mode::kWhole : Mode::kOneRank,
                  .shared = random() % 2 == 0,
                  .date = random_text(random),
                  .version = random_text(random),
                  .warmup = static_cast<std::int64_t>(random() % 9),
                  .repeats = static_cast<std::int64_t>(1 + random() % 4)};
  out.machines.resize(1 + random() % 3);
  for (Machine& machine : out.machines) {
    machine.name = random_text(random);
    machine.topology = random_text(random);
    for (auto n = random() % 4; n-- > 0;) machine.facts[random_text(random)] = random_text(random);
  }
  out.ranks.resize(out.mode == Mode::kOneRank ? 1 : 1 + random() % 3);
  std::int32_t next = 0;
  for (RankRecord& rank : out.ranks) {
    next += static_cast<std::int32_t>(random() % 3);
    rank.rank = next++;
    rank.machine = static_cast<std::int32_t>(random() % out.machines.size());
    rank.device = random_text(random);
    for (std::int64_t i = 0; i < out.repeats; ++i) rank.steps.push_back(random_time(random));
    rank.peak_memory = Bytes::from_base(static_cast<double>(random()));
    rank.scratch = Bytes::from_base(static_cast<double>(random()));
    for (auto n = random() % 3; n-- > 0;)
      rank.readings.push_back({random_text(random), perhaps(random), perhaps(random),
                               perhaps(random), perhaps(random), random_texts(random)});
    if (random() % 2 == 0)
      rank.timing = {.events = static_cast<std::int64_t>(random() % 9),
                     .step = random_time(random) - 3_ms,
                     .event = random_time(random) - 3_ms};
    for (auto n = random() % 3; n-- > 0;)
      rank.gemms.push_back({random_text(random), static_cast<std::int64_t>(random() % 9),
                            static_cast<std::int64_t>(random() % 9), random_time(random),
                            random_time(random)});
    if (random() % 2 == 0)
      rank.during = During{.samples = static_cast<std::int64_t>(random() % 100),
                           .clock_mhz = perhaps_span(random),
                           .celsius = perhaps_span(random),
                           .watts = perhaps_span(random),
                           .throttle = random_texts(random)};
    rank.tasks.resize(random() % 5);
    for (TaskTimes& task : rank.tasks) {
      task = {random_time(random), random_time(random), random_time(random),
              random_time(random), random_time(random), {}};
      if (out.mode == Mode::kOneRank)
        task.slack = random_time(random) - 3_ms;
      else if (random() % 3 == 0)
        task.lasted = random_time(random);
    }
  }
  return out;
}

TEST(MeasurementJson, ComesBackTheSame) {
  EXPECT_TRUE(rc::check("reading what was written gives the same measurement and bytes",
                        [](std::uint32_t seed) {
                          std::mt19937 random(seed);
                          const Measurement measurement = random_measurement(random);
                          const std::string text = to_json(measurement);
                          const auto back = measurement_from_json(text);
                          if (!back) RC_FAIL(back.error().message + "\n" + text);
                          RC_ASSERT(*back == measurement);
                          RC_ASSERT(to_json(*back) == text);
                        }));
}

// kSmall with `from` replaced by `to`.
std::string fault(std::string_view from, std::string_view to) {
  std::string text(kSmall);
  const auto place = text.find(from);
  if (place == std::string::npos) return "no such text";
  return message_of(measurement_from_json(text.replace(place, from.size(), to)));
}

TEST(MeasurementJson, RefusesGarbage) {
  EXPECT_THAT(fault(kSmall, std::string(100000, '[')), HasSubstr("nested deeper"));
  std::string text(kSmall);
  for (std::size_t size = 0; size < text.size() - 2; size += 7)
    EXPECT_FALSE(measurement_from_json(std::string_view(text).substr(0, size))) << size;
}

TEST(MeasurementJson, NeedsRanksAndOneOfThemAlone) {
  auto measurement = *measurement_from_json(kSmall);
  measurement.mode = Mode::kOneRank;
  EXPECT_THAT(message_of(measurement_from_json(to_json(measurement))),
              HasSubstr("ranks: mode 'one_rank' has one, found 2"));
  measurement.ranks.clear();
  EXPECT_THAT(message_of(measurement_from_json(to_json(measurement))),
              HasSubstr("ranks: there are none"));
}

constexpr std::string_view kArrivals = R"({"schema":"foreshard.arrivals/1",
"program":"gpt",
"fingerprint":"00000000deadbeef",
"rank":5,
"seconds":[null,0.00123,2]}
)";

TEST(ArrivalsJson, LooksLikeThisAndComesBackTheSame) {
  const auto arrivals = value_of(arrivals_from_json(kArrivals));
  EXPECT_EQ(to_json(arrivals), kArrivals);
  EXPECT_EQ(arrivals, (Arrivals{"gpt", "00000000deadbeef", 5, {std::nullopt, 1.23_ms, 2_s}}));
}

}  // namespace foreshard::measure::json_test
