// What every schedule must obey, whoever adds it, over all shapes that it accepts.
#include "tests/test.h"

#include "strategies/schedule/schedule.h"
#include "strategies/schedule/walk.h"

namespace foreshard::schedule::schedule_contract_test {

struct Case {
  const Schedule* schedule;
  PipelineShape shape;
  Table table;
  std::string name() const {
    return std::string(schedule->name) + " p=" + std::to_string(shape.stages) +
           " v=" + std::to_string(shape.chunks) + " m=" + std::to_string(shape.micro_batches) +
           (shape.pairs ? " in pairs" : "");
  }
};

// Of every schedule but the user's own.
std::vector<Case> accepted_cases(const PassTimes& times = {}) {
  std::vector<Case> cases;
  for (const Schedule& schedule : schedules())
    for (const int p : {1, 2, 3, 4, 8})
      for (const int v : {1, 2, 3, 5})
        for (const int m : {1, 2, 3, 4, 6, 8, 12, 16, 40}) {
          if (schedule.name == kCustom) continue;
          for (const bool pairs : {false, true}) {
            if (pairs && p > schedule.pairs_up_to) continue;
            const PipelineShape shape{
                .stages = p, .chunks = v, .micro_batches = m, .times = times, .pairs = pairs};
            auto table = table_of(schedule.name, shape);
            if (table) cases.push_back({&schedule, shape, *std::move(table)});
          }
        }
  return cases;
}

double in_chunks(const Case& c, double of_stage) {
  return of_stage * c.shape.chunks;
}

// The wait of the stage that waits longest between its first and its last slot, in the times of
// passes through a chunk.
double bubble(const Case& c) {
  double longest = 0;
  for (const Span& span : walk(c.table, c.shape, c.schedule->placement))
    longest = std::max(longest, span.end - span.begin);
  const PassTimes& times = c.shape.times;
  return longest -
         in_chunks(c, c.shape.micro_batches * (times.forward + times.input + times.weight));
}

int peak(const Case& c) {
  int most = 0;
  for (const auto& slots : c.table) most = std::max(most, most_in_flight(slots));
  return most;
}

TEST(ScheduleContract, AcceptsSomeShapesOfEverySchedule) {
  std::set<std::string_view> names;
  for (const Case& c : accepted_cases()) names.insert(c.schedule->name);
  EXPECT_EQ(names.size() + 1, schedules().size());
  EXPECT_TRUE(std::is_sorted(schedules().begin(), schedules().end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
}

// Each pass once, backward behind forward, weights behind inputs, and no stage waits for ever.
TEST(ScheduleContract, HasSoundTables) {
  for (const PassTimes& times : {PassTimes{}, PassTimes{2, 3, 1, 0.5}}) {
    for (const Case& c : accepted_cases(times)) {
      const auto fault = fault_in(c.table, c.shape, c.schedule->placement);
      EXPECT_FALSE(fault) << c.name() << ": stage " << fault->stage << " " << fault->message;
      const bool splits = std::ranges::any_of(c.table, [](const auto& slots) {
        return std::ranges::any_of(slots,
                                   [](const Slot& s) { return s.part == PassPart::kWeight; });
      });
      EXPECT_EQ(splits, c.schedule->splits) << c.name();
      const bool pairs = std::ranges::any_of(
          c.table, [](const auto& slots) { return std::ranges::any_of(slots, &Slot::beside); });
      EXPECT_LE(pairs, c.shape.pairs) << c.name();
      EXPECT_GE(pairs, c.shape.pairs && c.shape.micro_batches > 2 * c.shape.stages) << c.name();
    }
  }
}

// With F, B and W the times of a chunk. The sources are those of schedules.h; each formula is for
// pipelines that run full.
TEST(ScheduleContract, HasThePublishedBubble) {
  std::map<std::string_view, int> checked;
  for (const PassTimes& times :
       {PassTimes{}, PassTimes{2, 2, 1}, PassTimes{3, 4, 3}, PassTimes{20, 21, 10}}) {
    const double f = times.forward;
    const double b = times.input;
    const double w = times.weight;
    for (const Case& c : accepted_cases(times)) {
      const double p = c.shape.stages;
      const double m = c.shape.micro_batches;
      const std::string_view name = c.schedule->name;
      const bool equal = f == b && b == w;
      std::optional<double> expected;
      // A forward pass beside a backward pass is handed on later; 1F1B has pairs on one stage
      // alone.
      if (!c.schedule->splits && (name != "breadth-first" || m >= p) &&
          (!c.shape.pairs || name == "1f1b"))
        expected = (p - 1) * (f + b + w);
      if ((name == "zb-h1" || name == "zb-1p") && m >= p) expected = (p - 1) * (f + b - w);
      if (name == "zb-h2" && m >= 2 * p - 1) expected = (p - 1) * (f + b - 2 * w);
      if (name == "zb-2p" && m >= 2 * p && equal) expected = 0;
      if (name == "zb-v" && m >= 2 * p && equal) expected = 0;
      // Half of 1F1B's 6 (p-1) passes through a chunk; of three stages, whose pattern is denser, 5.
      if (name == "v-half" && m >= 2 * p && equal && c.shape.stages % 2 == 0)
        expected = 3 * (p - 1);
      // DeepSeek-AI: (PP/2 - 1)(F&B + B - 3W), on the p = PP/2 ranks of the V, where B is a whole
      // backward pass; F&B, a forward pass beside one, takes as long as both here. One after the
      // other they wait less, as the first of the two is handed on earlier.
      if (name == "dualpipe-v" && equal)
        expected = (p - 1) * (c.shape.pairs ? f + 2 * b - w : f + b - w);
      if (!expected) continue;
      ++checked[name];
      EXPECT_NEAR(bubble(c), *expected, 1e-9) << c.name() << " times " << f << " " << b << " " << w;
    }
  }
  EXPECT_EQ(checked.size() + 2, schedules().size());  // v-min below, and the user's own
}

// V-Min: two thirds of 1F1B's 6 (p-1) and a few passes more, none of them in every micro-batch.
TEST(ScheduleContract, VMinWaitsTwoThirdsOfOneFOneB) {
  for (const Case& c : accepted_cases()) {
    if (c.schedule->name != "v-min" || c.shape.micro_batches < 2 * c.shape.stages) continue;
    const double p = c.shape.stages;
    EXPECT_LE(bubble(c), 4 * (p - 1) + 3) << c.name();
    EXPECT_LT(bubble(c), 6 * (p - 1)) << c.name();
  }
}

// The automatic schedules wait no longer than the handmade ones with as many micro-batches in
// flight, whatever the times.
TEST(ScheduleContract, AutomaticSchedulesAreNoWorseThanHandmadeOnes) {
  for (const PassTimes& times : {PassTimes{2, 2, 1}, PassTimes{3, 4, 3}, PassTimes{20, 21, 10}}) {
    for (const Case& c : accepted_cases(times)) {
      if (c.schedule->name != "zb-1p" && c.schedule->name != "zb-2p") continue;
      const Schedule* handmade = find_schedule(c.schedule->name == "zb-1p" ? "zb-h1" : "zb-h2");
      const auto table = value_of(table_of(handmade->name, c.shape));
      EXPECT_LE(bubble(c), bubble({handmade, c.shape, table}) + 1e-9) << c.name();
    }
  }
}

TEST(ScheduleContract, HoldsThePublishedNumberInFlight) {
  for (const Case& c : accepted_cases()) {
    const int p = c.shape.stages;
    const int v = c.shape.chunks;
    const int m = c.shape.micro_batches;
    const std::string_view name = c.schedule->name;
    for (int s = 0; s < p; ++s) {
      std::optional<int> expected;
      if (name == "gpipe" || name == "breadth-first") expected = m * v;
      const int pairs = c.shape.pairs ? 1 : 0;  // one pass more to warm up
      if (name == "1f1b") expected = std::min(p - s + pairs, m);
      if (name == "interleaved")
        expected = std::min(2 * (p - 1 - s) + (v - 1) * p + 1 + pairs, m * v);
      if (name == "zb-h1") expected = std::min(p, m);
      if (name == "zb-h2") expected = std::min(2 * p - 1, m);
      // As much as 1F1B has on its first stage: p micro-batches of two chunks.
      if (name == "zb-v" && m >= 2 * p) expected = 2 * p;
      // PP + 1 of PP = 2 p.
      if (name == "dualpipe-v") expected = 2 * p + 1;
      const int most = most_in_flight(c.table[static_cast<std::size_t>(s)]);
      EXPECT_EQ(most, expected.value_or(most)) << c.name() << " stage " << s;
    }
    std::optional<int> limit;
    if (name == "zb-1p") limit = p;
    if (name == "zb-2p") limit = 2 * p;
    // Half of 2 p chunks and one micro-batch more.
    if (name == "v-half") limit = p + 2;
    // A third, and what the last weight gradients still hold.
    if (name == "v-min") limit = (2 * p + 2) / 3 + 3;
    EXPECT_LE(peak(c), limit.value_or(peak(c))) << c.name();
  }
}

}  // namespace foreshard::schedule::schedule_contract_test
