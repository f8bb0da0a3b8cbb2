#include "sim/search/internal/shape.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/strategies/plan/tiny_parts.h"
#include "tests/test.h"

namespace foreshard::search {
namespace {

struct Compiled {
  Labels labels;
  StageClasses classes;
  PlanShape shape;
};

Compiled compiled(const Strategy& strategy, std::int32_t layers, ExecutionTraits outside = {}) {
  const plan::StepPlan plan = plan::planned(plan::tiny_parts(strategy, layers), strategy);
  const std::vector<std::int32_t> devices(plan.roles.size(), 0);
  StageClasses classes = classes_of(plan, devices);
  PlanShape shape(plan, classes, outside);
  return {labels_of(plan.parts), std::move(classes), std::move(shape)};
}

// Forward passes take `forward`, backward ones twice that, all else nothing.
std::vector<double> times_of(const PlanShape& shape, double forward) {
  std::vector<double> times;
  for (const Work& work : shape.works())
    times.push_back(work.kind != plan::ActionKind::kPass    ? 0
                    : work.direction == Direction::kForward ? forward
                                                            : 2 * forward);
  return times;
}

// Embedding and two layers, four stages of two, two and the head.
TEST(StageClasses, AreTheFirstTheMiddleAndTheLastStages) {
  const auto [labels, classes, shape] = compiled(plan::tiny_strategy(6, 8), 12);
  EXPECT_EQ(classes.of_stage, (std::vector<std::int32_t>{0, 1, 1, 1, 1, 2}));
  ASSERT_EQ(classes.all.size(), 3U);
  EXPECT_EQ(classes.all[1].first, 1);
  EXPECT_EQ(classes.all[1].last, 4);
  EXPECT_EQ(classes.all[1].before, (std::vector<std::int64_t>{1, 3, 0}));
  EXPECT_EQ(classes.all[0].units(labels), (BlockCounts{1, 2, 0}));
  EXPECT_EQ(classes.all[2].units(labels), (BlockCounts{0, 2, 1}));
}

// Stages on other devices are others.
TEST(StageClasses, HaveDevicesOfOneKind) {
  const Strategy strategy = plan::tiny_strategy(4, 8);
  const plan::StepPlan plan = plan::planned(plan::tiny_parts(strategy, 8), strategy);
  EXPECT_EQ(classes_of(plan, {0, 0, 1, 1}).of_stage, (std::vector<std::int32_t>{0, 1, 2, 3}));
}

// 1F1B of equal passes: (m + p - 1) (F + B).
TEST(PlanShape, WalksOneForwardOneBackward) {
  auto [labels, classes, shape] = compiled(plan::tiny_strategy(4, 8), 8);
  EXPECT_DOUBLE_EQ(shape.walk(times_of(shape, 1)) / 1_s, (8 + 3) * 3);
  // Its works are those of classes: a forward and a backward pass of each.
  EXPECT_EQ(std::ranges::count(shape.works(), plan::ActionKind::kPass, &Work::kind), 3 * 2);
}

TEST(PlanShape, KnowsThePathThatItWalked) {
  auto [labels, classes, shape] = compiled(plan::tiny_strategy(4, 8), 8);
  EXPECT_EQ(shape.longest_path(times_of(shape, 1)), Seconds{});
  shape.walk(times_of(shape, 1));
  EXPECT_DOUBLE_EQ(shape.longest_path(times_of(shape, 1)) / 1_s, 33);
  EXPECT_DOUBLE_EQ(shape.longest_path(times_of(shape, 5)) / 1_s, 165);
  EXPECT_EQ(shape.paths(), 1U);
  shape.walk(times_of(shape, 2));
  EXPECT_EQ(shape.paths(), 1U);
}

// Each gather begins with a copy of its shard from the host, where copies are made one after
// another, those of activations among them.
TEST(PlanShape, CopiesFromTheHostTakeTurns) {
  Strategy strategy = plan::tiny_strategy(1, 2);
  plan::set_data(strategy, 2, 3);
  strategy.offload_activation_layers = 2;
  using plan::ActionKind;
  const auto counted = [](const PlanShape& shape, ActionKind kind, Segment segment) {
    double count = 0;
    for (std::size_t i = 0; i < shape.works().size(); ++i)
      if (shape.works()[i].kind == kind && shape.works()[i].segment == segment)
        count += shape.counts()[i];
    return count;
  };
  const auto taken = [](PlanShape& shape, bool fetches) {
    std::vector<double> times;
    for (const Work& work : shape.works()) {
      const bool copies = work.kind == ActionKind::kGather && work.segment == Segment::kAhead;
      times.push_back(copies || (fetches && work.kind == ActionKind::kFetch) ? 1 : 0);
    }
    return shape.walk(times) / 1_s;
  };
  auto [labels, classes, shape] = compiled(strategy, 4, {.copies_ahead = true});
  const double gathers = counted(shape, ActionKind::kGather, Segment::kBehind);
  EXPECT_GT(gathers, 0);
  EXPECT_EQ(counted(shape, ActionKind::kGather, Segment::kAhead), gathers);
  EXPECT_EQ(counted(shape, ActionKind::kFetch, Segment::kAll), 2 * 2);
  EXPECT_DOUBLE_EQ(taken(shape, false), gathers);
  EXPECT_DOUBLE_EQ(taken(shape, true), gathers + 4);
  EXPECT_EQ(counted(compiled(strategy, 4).shape, ActionKind::kGather, Segment::kAhead), 0);
}

// Whatever the times: a path is no longer than the walk, and after it equals it.
RC_GTEST_PROP(PlanShape, ItsPathsAreBoundsOfWalks, ()) {
  Strategy strategy = plan::tiny_strategy(*rc::gen::inRange(1, 6), *rc::gen::inRange(1, 12));
  strategy.schedule = *rc::gen::element<std::string>("1f1b", "gpipe");
  plan::set_data(strategy, *rc::gen::element(1, 2), *rc::gen::element(0, 1));
  auto [labels, classes, shape] = compiled(strategy, *rc::gen::inRange(5, 9));
  for (int round = 0; round < 6; ++round) {
    std::vector<double> times;
    for (std::size_t i = 0; i < shape.works().size(); ++i)
      times.push_back(*rc::gen::inRange(0, 100));
    const Seconds before = shape.longest_path(times);
    const Seconds walked = shape.walk(times);
    RC_ASSERT(before <= walked * (1 + 1e-9));
    RC_ASSERT(std::abs(shape.longest_path(times) / 1_s - walked / 1_s) <= 1e-9 * (walked / 1_s));
  }
}

}  // namespace
}  // namespace foreshard::search
