#include "validate/compare/compare.h"

#include <nlohmann/json.hpp>
#include <rapidcheck.h>

#include "base/file.h"
#include "tests/test.h"
#include "tests/validate/compare/perfect_replay.h"

#include "sim/study/run.h"
#include "validate/measurement/measurement.h"

namespace foreshard::compare::compare_test {

using measure::Measurement;

// Two ranks: a product, the sum of its result over both, an update.
program::Program two_ranks() {
  program::Program program{
      .name = "two", .mesh = {{"data", 2}}, .streams = {{"compute"}, {"data"}}};
  const program::StreamId compute(0);
  const program::StreamId data(1);
  program.blocks.push_back(
      {"step",
       {{.name = "product",
         .body = Kernel(Gemm{.m = 8, .n = 8, .k = 8, .dtype = DType::kFp32}),
         .stream = compute},
        {.name = "sum",
         .body = program::Communication{.kind = program::CollectiveKind::kAllReduce,
                                        .group = program::AxisGroup{.axes = {0}},
                                        .bytes = 12_MiB,
                                        .dtype = DType::kFp32},
         .stream = data,
         .after = {0}},
        {.name = "update",
         .body = Kernel(Pass{.kind = PassKind::kAdam, .rows = 64, .dtype = DType::kFp32}),
         .stream = compute,
         .after = {1},
         .optimizer = true}}});
  program.roles.push_back(
      {.name = "all", .ranks = {0, 1}, .calls = {{.block = program::BlockId(0)}}});
  return program;
}

sim::Prediction predicted() {
  sim::Prediction out;
  out.cluster = "here";
  out.step = 6_s;
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    sim::DeviceClass& one = out.classes.emplace_back();
    one.representative = rank;
    one.count = 1;
    one.finish = 6_s;
    one.memory.peak = 1_MiB;
    out.class_of_rank.push_back(rank);
    // A communication begins when its last member is there, on the time lines of all.
    const Seconds product = rank == 0 ? 2_s : 3_s;
    for (const auto& [task, start, finish] :
         {std::tuple{0, 0_s, product}, std::tuple{1, 3_s, 5_s}, std::tuple{2, 5_s, 6_s}})
      out.timeline.push_back({.device_class = rank,
                              .stream = task == 1 ? 1 : 0,
                              .task = task,
                              .start = start,
                              .finish = finish});
  }
  return out;
}

Measurement measured() {
  Measurement out{.program = "two",
                  .fingerprint = measure::fingerprint_of(two_ranks()),
                  .backend = "host",
                  .repeats = 1};
  out.machines.resize(1);
  out.ranks.push_back({.rank = 0,
                       .steps = {6.5_s},
                       .tasks = {times(0_s, 2.5_s), times(2.5_s, 5.5_s), times(5.5_s, 6.5_s)},
                       .peak_memory = 2_MiB});
  out.ranks.push_back({.rank = 1,
                       .steps = {7_s},
                       .tasks = {times(0_s, 3.5_s), times(3.5_s, 5.5_s), times(5.5_s, 7_s)},
                       .peak_memory = 1_MiB});
  return out;
}

const Row& row_of(const std::vector<Row>& rows, const std::string& name) {
  for (const Row& row : rows)
    if (row.name == name) return row;
  ADD_FAILURE() << "no row " << name;
  return rows.front();
}

// Booked, in seconds      predicted: rank 0   rank 1   mean | measured: rank 0   rank 1   mean
//   product                            2        3      2.5               2.5      3.5      3
//   waiting for rank 1                 1        0      0.5               1        0        0.5
//   sum                                2        2      2                 2        2        2
//   update                             1        1      1                 1        1.5      1.25
//   nothing                            0        0      0                 0.5      0        0.25
//                                      6        6      6                 7        7        7
// The step is 1 s off, half of it because of the product.
TEST(Compare, BooksEachInstantOnceAndExplainsTheError) {
  const auto made = compare(two_ranks(), predicted(), measured());
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->step.predicted, 6_s);
  EXPECT_EQ(made->step.measured, 7_s);
  EXPECT_DOUBLE_EQ(*made->step.error(), 6.0 / 7 - 1);

  const Row& product = row_of(made->kinds, "gemm");
  EXPECT_EQ(product.count, 2);
  EXPECT_EQ(product.each.predicted, 2.5_s);
  EXPECT_EQ(product.each.measured, 3_s);
  EXPECT_EQ(product.booked.measured, 3_s);
  EXPECT_DOUBLE_EQ(*product.share_of_error, 0.5);
  EXPECT_DOUBLE_EQ(*product.share_of_step, 3.0 / 7);
  EXPECT_NEAR(product.spread, 0.2, 1e-12);

  // What the last member sees: 3.5 to 5.5.
  const Row& sum = row_of(made->kinds, "all_reduce 12.0 MiB, 2 ranks");
  EXPECT_EQ(sum.each.predicted, 2_s);
  EXPECT_EQ(sum.each.measured, 2_s);
  EXPECT_DOUBLE_EQ(*sum.share_of_error, 0);

  EXPECT_EQ(row_of(made->kinds, "waiting for other ranks").booked.measured, 0.5_s);
  EXPECT_DOUBLE_EQ(*row_of(made->kinds, "adam").share_of_error, 0.25);
  EXPECT_DOUBLE_EQ(*row_of(made->kinds, "idle").share_of_error, 0.25);
  EXPECT_EQ(row_of(made->kinds, "between medians").booked.measured, 0_s);
  EXPECT_EQ(made->residuals.front().name, "gemm 8x8x8 fp32");

  ASSERT_EQ(made->streams.size(), 2u);
  EXPECT_EQ(made->streams[0].busy.predicted, 3.5_s);
  EXPECT_EQ(made->streams[1].busy.measured, 2_s);
  EXPECT_EQ(made->overlap.hidden.measured, 0_s);
  EXPECT_EQ(made->overlap.exposed[static_cast<std::size_t>(program::Purpose::kData)].measured, 2_s);
  EXPECT_EQ(made->per_rank[0].finish.measured, 6.5_s);
  EXPECT_EQ(made->per_rank[0].measured_peak, 2_MiB);
}

// The update no longer waits for the sum: rank 0 computes until 3.5 s, so that 0.5 s of the sum
// (3.5 to 5.5 for all) is measured beside nothing... and with an update from 4 s to 5 s, 1 s is
// hidden.
// Rank 1, the last to come, at 3.5 s, is done at 5.2 s, rank 0 at 5.5 s: the sum lasts 2 s. Where
// both were looked at together it is what that said.
TEST(Compare, ACommunicationLastsUntilItsLastMemberIsDone) {
  Measurement measurement = measured();
  measurement.ranks[1].tasks[1] = times(3.5_s, 5.2_s);
  const auto sum = [&] {
    const auto made = value_of(compare(two_ranks(), predicted(), measurement));
    return row_of(made.kinds, "all_reduce 12.0 MiB, 2 ranks").each;
  };
  EXPECT_NEAR(sum().measured / 1_s, 2, 1e-12);
  EXPECT_NEAR(sum().predicted / 1_s, 2, 1e-12);
  for (auto& rank : measurement.ranks) rank.tasks[1].lasted = 1.8_s;
  EXPECT_NEAR(sum().measured / 1_s, 1.8, 1e-12);
}

TEST(Compare, SaysHowMuchCommunicationIsHidden) {
  program::Program program = two_ranks();
  program.blocks[0].tasks[2].after = {0};
  Measurement measurement = measured();
  measurement.fingerprint = measure::fingerprint_of(program);
  for (measure::RankRecord& rank : measurement.ranks) {
    rank.tasks[2] = times(4_s, 5_s);
    rank.steps = {5.5_s};
  }
  const auto made = value_of(compare(program, predicted(), measurement));
  EXPECT_EQ(made.overlap.communicating.measured, 2_s);
  EXPECT_EQ(made.overlap.hidden.measured, 1_s);
  EXPECT_EQ(row_of(made.kinds, "all_reduce 12.0 MiB, 2 ranks").booked.measured, 1_s);
}

// The sum, 3 s to 5 s, holds up an update of 1 s that began at 2.5 s (3 s): it ends at 5.5 s (6 s).
TEST(Compare, OnACorePredictedKernelsStandStillBesideCommunication) {
  program::Program program = two_ranks();
  program.blocks[0].tasks[2].after = {0};
  Measurement measurement = measured();
  measurement.fingerprint = measure::fingerprint_of(program);
  sim::Prediction prediction = predicted();
  for (sim::TimelineEntry& entry : prediction.timeline)
    if (entry.task == 2) {
      entry.start = entry.device_class == 0 ? 2.5_s : 3_s;
      entry.finish = entry.start + 3_s;
    }
  const auto made = value_of(compare(program, prediction, measurement, {.turns = true}));
  EXPECT_EQ(row_of(made.kinds, "adam").each.predicted, 1_s);
  EXPECT_EQ(row_of(made.kinds, "all_reduce 12.0 MiB, 2 ranks").booked.predicted, 2_s);
  EXPECT_EQ(made.overlap.hidden.predicted, 0_s);
  const auto not_so = value_of(compare(program, prediction, measurement));
  EXPECT_EQ(row_of(not_so.kinds, "adam").each.predicted, 3_s);
  EXPECT_EQ(not_so.overlap.hidden.predicted, 2_s);
}

// One rank alone: its communications come when told, and are compared by slack.
TEST(Compare, OfOneRankComparesComputationAndSlack) {
  Measurement measurement = measured();
  measurement.mode = measure::Mode::kOneRank;
  measurement.ranks.erase(measurement.ranks.begin());
  measurement.ranks[0].tasks[1].slack = -1.5_s;
  const auto made = value_of(compare(two_ranks(), predicted(), measurement));
  EXPECT_EQ(made.ranks, 1);
  ASSERT_TRUE(made.slack);
  EXPECT_EQ(made.slack->late, 1);
  EXPECT_EQ(made.slack->waited, 1.5_s);
  EXPECT_EQ(row_of(made.kinds, "waiting for other ranks").booked.measured, 2_s);
  EXPECT_THAT(to_text(made), HasSubstr("the rank waited for 1 of them, 1.50 s in all"));
  EXPECT_THAT(made.remarks, IsEmpty());

  const auto in_turns = value_of(compare(two_ranks(), predicted(), measurement, {.turns = true}));
  EXPECT_THAT(in_turns.remarks,
              ElementsAre(HasSubstr("a single rank carries out no communication")));
}

TEST(Compare, SaysWhatTimingCost) {
  Measurement measurement = measured();
  measurement.ranks[1].timing = {.events = 4, .step = 2_ms, .event = 0.5_ms};
  const auto made = value_of(compare(two_ranks(), predicted(), measurement));
  EXPECT_THAT(to_text(made), HasSubstr("note: the 4 events that time the tasks took 2.00 ms of the "
                                       "step of rank 1, 500 us each\n"));
}

std::string fault(void (*change)(Measurement&)) {
  Measurement measurement = measured();
  change(measurement);
  return message_of(compare(two_ranks(), predicted(), measurement));
}

TEST(Compare, SaysWhatSlowedTheDeviceDown) {
  Measurement measurement = measured();
  measurement.ranks[1].during = measure::During{.samples = 1, .throttle = {"hw_thermal"}};
  const auto made = value_of(compare(two_ranks(), predicted(), measurement));
  EXPECT_THAT(to_text(made), HasSubstr("note: the device of rank 1 was slowed down by hw_thermal"));
}

TEST(Compare, RefusesWhatDoesNotBelongTogether) {
  EXPECT_THAT(fault([](Measurement& m) { m.fingerprint = "0000000000000000"; }),
              HasSubstr("is of another Program: 'two' with fingerprint 0000000000000000"));
  EXPECT_THAT(fault([](Measurement& m) { m.ranks.pop_back(); }),
              HasSubstr("measurement: has 1 ranks, the Program 2"));
  EXPECT_THAT(fault([](Measurement& m) { m.ranks[1].rank = 7; }),
              HasSubstr("has a rank 7, the Program has 2"));
  EXPECT_THAT(fault([](Measurement& m) { m.ranks[1].tasks.pop_back(); }),
              HasSubstr("has 2 tasks of rank 1, the Program 3"));
}

TEST(Compare, WritesTextAndJson) {
  auto measurement = measured();
  measurement.shared = true;
  const auto made = value_of(compare(two_ranks(), predicted(), measurement));
  const std::string text = to_text(made);
  EXPECT_THAT(text, HasSubstr("step   predicted 6.00 s   measured 7.00 s   error -14.3 %"));
  EXPECT_THAT(text, HasSubstr("several ranks shared one device"));
  const auto json = nlohmann::json::parse(to_json(made));
  EXPECT_EQ(json["schema"], "foreshard.comparison/1");
  EXPECT_EQ(json["step"]["measured_s"], 7);
  EXPECT_EQ(json["kinds"].size(), made.kinds.size());
  EXPECT_EQ(json["slack"], nullptr);
  EXPECT_EQ(json["per_rank"][0]["peak_memory"]["measured_bytes"], 2 * 1024 * 1024);
}

TEST(Compare, DrawsBothTimeLines) {
  const std::string path = testing::TempDir() + "/compare_trace.json";
  ASSERT_TRUE(write_trace(path, two_ranks(), predicted(), measured()).ok());
  const auto text = value_of(read_file(path, 1_MiB));
  const auto json = nlohmann::json::parse(text);
  std::vector<std::string> processes;
  double waited = 0;
  for (const auto& event : json["traceEvents"]) {
    if (event["name"] == "process_name") processes.push_back(event["args"]["name"]);
    if (event["name"] == "wait: sum") waited += event["dur"].get<double>();
  }
  EXPECT_THAT(processes, ElementsAre("rank 0 measured", "rank 0 predicted", "rank 1 measured",
                                     "rank 1 predicted"));
  EXPECT_DOUBLE_EQ(waited, 2e6);  // 1 s on each time line of rank 0
}

class OfAStudy : public testing::TestWithParam<std::string> {
 protected:
  static study::StudyRun run() {
    const std::string file = FORESHARD_SOURCE_DIR "/configs/studies/" + GetParam() + ".yaml";
    auto study = value_of(study::load_study({.study = file}, shipped_options()));
    return value_of(study::run_study(study, {.timeline = true}));
  }
};

TEST_P(OfAStudy, APerfectReplayHasNoError) {
  const study::StudyRun run = OfAStudy::run();
  const auto made = compare(run.program, run.prediction, replayed(run.program, run.prediction));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_NEAR(*made->step.error(), 0, 1e-12);
  for (const Row& row : made->residuals) {
    EXPECT_NEAR((row.each.predicted - row.each.measured) / made->step.measured, 0, 1e-12)
        << row.name;
  }
}

TEST_P(OfAStudy, BookedTimesAddUpToBothSteps) {
  const study::StudyRun run = OfAStudy::run();
  const Measurement perfect = replayed(run.program, run.prediction);
  EXPECT_TRUE(rc::check([&](std::uint32_t seed) {
    std::mt19937 random(seed);
    Measurement noisy = perfect;
    Seconds last;
    for (measure::RankRecord& rank : noisy.ranks) {
      for (measure::TaskTimes& task : rank.tasks) {
        const double factor = 0.5 + static_cast<double>(random() % 1000) / 1000;
        task = times(factor * task.start, factor * task.finish);
        last = std::max(last, task.finish);
      }
      rank.steps = {last};
    }
    const auto made = compare(run.program, run.prediction, noisy);
    RC_ASSERT(made.has_value());
    Pair sum;
    double share = 0;
    for (const Row& row : made->kinds) {
      sum.predicted += row.booked.predicted;
      sum.measured += row.booked.measured;
      share += row.share_of_error.value_or(0);
    }
    RC_ASSERT(std::abs(sum.predicted / run.prediction.step - 1) < 1e-9);
    RC_ASSERT(std::abs(sum.measured / made->step.measured - 1) < 1e-9);
    RC_ASSERT(std::abs(share - 1) < 1e-6);
  }));
}

INSTANTIATE_TEST_SUITE_P(Host, OfAStudy,
                         testing::Values("host-dp2", "host-pp2", "host-tp2", "host-zero3"),
                         [](const auto& of) {
                           std::string name = of.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace foreshard::compare::compare_test
