// A new way to run a step is one planner and one line: gradients reduced every second micro-batch.
#include "strategies/plan/planner.h"

#include "tests/strategies/execute/serial_is_sharded.h"
#include "tests/strategies/execute/tiny_models.h"
#include "tests/test.h"

#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::execute {
namespace {

// The planner: behind each unit's backward pass of every second and of the last micro-batch.
Status reduce_every_second(plan::Draft& draft) {
  if (draft.plan.states.reduce == StateSharding::Reduce::kNever) return {};
  draft.plan.states.reduce = StateSharding::Reduce::kEveryMicroBatch;  // more than once in a step
  const std::int64_t last = draft.strategy.micro_batches() - 1;
  for (plan::DraftRole& role : draft.roles) {
    std::map<std::int32_t, std::int32_t> bucket_of;  // by unit
    for (plan::Section& section : role.slots) {
      const std::int32_t micro_batch = section.slot->micro_batch;
      if (section.slot->direction == Direction::kForward ||
          (micro_batch % 2 == 0 && micro_batch != last))
        continue;
      role.split_passes(section);
      std::vector<plan::ActionRef> actions;
      for (const plan::ActionRef pass : section.actions) {
        actions.push_back(pass);
        const std::int32_t unit = role[pass].units.first;
        std::int64_t elements = 0;
        for (const plan::ParameterGroup& group : draft.plan.parts.own_groups(unit))
          elements += group.elements;
        if (elements == 0) continue;
        if (!bucket_of.contains(unit))
          bucket_of[unit] = draft.add(plan::Bucket{.units = {{unit, 1}},
                                                   .over = {axis_of(draft.plan.parts.mesh, "data")},
                                                   .elements = elements,
                                                   .opened_by = unit});
        actions.push_back(role.make({.kind = plan::ActionKind::kReduce,
                                     .direction = Direction::kBackward,
                                     .chunk = section.slot->chunk,
                                     .micro_batch = micro_batch,
                                     .what = bucket_of[unit],
                                     .after = {pass}}));
      }
      section.actions = std::move(actions);
    }
  }
  return {};
}

// The line.
std::vector<plan::Planner> planners() {
  std::vector<plan::Planner> list(plan::planners().begin(), plan::planners().end());
  std::ranges::find(list, "reductions", &plan::Planner::name)->add = reduce_every_second;
  return list;
}

std::int64_t reductions_of(const plan::StepPlan& plan) {
  std::int64_t count = 0;
  for (const plan::Role& role : plan.roles)
    count += std::ranges::count(role.actions, plan::ActionKind::kReduce, &plan::Action::kind);
  return count;
}

TEST(Planner, ReducesEverySecondMicroBatch) {
  const Model model = tiny_gpt();
  for (const std::int64_t zero : {0, 1}) {
    Strategy strategy = tiny_strategy(2, 2, 2, 5);
    strategy.sequence_parallel = true;
    strategy.zero_stage = zero;
    const auto blocks = value_of(lower::lower_blocks(model, strategy));
    const auto plan =
        value_of(plan::make_plan(lower::parts_of(model, strategy, blocks), strategy, planners()));
    // By hand: embedding, 4 layers, head; behind micro-batches 1, 3 and 4.
    EXPECT_EQ(reductions_of(plan), 6 * 3);
    EXPECT_EQ(message_of(plan::verify(plan)), "accepted");

    const StepResult serial = executed(model, serial_of(strategy));
    for (std::uint64_t order = 0; order < 8; ++order) {
      const auto result = value_of(execute_step(model, strategy, plan, {.order = order}));
      EXPECT_THAT(compare(serial, result, kTolerance).faults, IsEmpty());
    }

    // And it is lowered.
    const program::Program program =
        lower::program_of(plan, strategy, lower::planned_blocks(blocks, strategy), 1_us);
    EXPECT_EQ(message_of(program::verify(program)), "accepted");
  }
}

}  // namespace
}  // namespace foreshard::execute
