// Every invariant of a step plan, broken on purpose; and plans of random strategies, which keep
// all.

#include "tests/strategies/lower/random_strategy.h"
#include "tests/strategies/plan/tiny_parts.h"
#include "tests/test.h"

#include "strategies/plan/planner.h"
#include "strategies/program/lower/lower.h"

namespace foreshard::plan {
namespace {

Action& find(StepPlan& plan, std::size_t role, ActionKind kind, int nth = 0) {
  for (Action& action : plan.roles[role].actions)
    if (action.kind == kind && nth-- == 0) return action;
  ADD_FAILURE() << "no such action";
  return plan.roles[role].actions.front();
}

// Two stages, one of them of each kind of everything; ZeRO stage as given.
StepPlan two_stages(std::int64_t zero_stage, bool gathers_early = false) {
  Strategy strategy = tiny_strategy(2, 3);
  set_data(strategy, 2, zero_stage);
  strategy.framework.value.overlap_parameter_gather = gathers_early;
  return planned(tiny_parts(strategy, 6), strategy);
}

// One unit of two groups of parameters: of the first, its pass reduces all but 40 elements itself.
StepPlan two_groups() {
  Strategy strategy = tiny_strategy(1, 2);
  set_data(strategy, 2, 0);
  PlannedModel parts{.name = "graph",
                     .mesh = {{"tensor", 1}, {"data", 2}, {"pipeline", 1}, {"other", 2}},
                     .blocks = {{"graph",
                                 {{.over = {1}, .elements = 100, .reduced_inside = 60},
                                  {.over = {1, 3}, .elements = 10}}}},
                     .units = {{.name = "graph"}},
                     .pieces = {{0, 1}}};
  return planned(parts, strategy);
}

// All of it.
StepPlan all_inside() {
  StepPlan plan = two_groups();
  Strategy strategy = tiny_strategy(1, 2);
  set_data(strategy, 2, 0);
  PlannedModel parts = plan.parts;
  parts.blocks[0].groups = {{.over = {1}, .elements = 100, .reduced_inside = 100}};
  return planned(parts, strategy);
}

Action& last_backward(StepPlan& plan) {
  return find(plan, 0, ActionKind::kPass, 3);
}

// Backward passes in two parts.
StepPlan in_two_parts() {
  Strategy strategy = tiny_strategy(2, 3);
  set_data(strategy, 2, 0);
  strategy.schedule = "zb-h1";
  return planned(tiny_parts(strategy, 6), strategy);
}

// Of each stage's 3 layers the first is offloaded, and the CPU takes the step.
StepPlan offloaded() {
  Strategy strategy = tiny_strategy(2, 2);
  set_data(strategy, 2, 2);
  strategy.offload_activation_layers = 1;
  strategy.offload_optimizer = OptimizerOffload::kCpu;
  return planned(tiny_parts(strategy, 6), strategy);
}

Action& find(StepPlan& plan, std::size_t role, PassPart part) {
  for (Action& action : plan.roles[role].actions)
    if (action.kind == ActionKind::kPass && action.part == part) return action;
  ADD_FAILURE() << "no such pass";
  return plan.roles[role].actions.front();
}

struct Broken {
  const char* invariant;
  StepPlan plan;
  std::function<void(StepPlan&)> change;
};

TEST(VerifyPlan, NamesTheInvariantThatIsBroken) {
  const std::vector<Broken> cases{
      {"invariant 1: layer 0 is in 2 chunks", two_stages(0),
       [](StepPlan& p) {
         p.roles[1].chunks[0].units = {1, 7};
       }},
      {"invariant 2: stage 0, forward 0 of chunk 0: does not pass the units", two_stages(0),
       [](StepPlan& p) { find(p, 0, ActionKind::kPass).units.count = 1; }},
      {"invariant 2: stage 0, action 2: is of another slot", two_stages(0),
       [](StepPlan& p) { find(p, 0, ActionKind::kPass, 1).micro_batch = 0; }},
      {"invariant 2: stage 1, action 1: is of another slot", two_stages(0),
       [](StepPlan& p) { find(p, 1, ActionKind::kPass).direction = Direction::kBackward; }},
      {"invariant 2: stage 0, action 0: passes units of another chunk", two_stages(0),
       [](StepPlan& p) { find(p, 0, ActionKind::kPass).units.first = 1; }},
      {"invariant 3: stage 0, action 0: names a chunk, units", two_stages(0),
       [](StepPlan& p) { find(p, 0, ActionKind::kPass).units.first = 7; }},
      {"invariant 3: stage 0, action 1: names a chunk, units", two_stages(0),
       [](StepPlan& p) { find(p, 0, ActionKind::kSend).what = 1; }},
      {"invariant 3", two_stages(0),
       [](StepPlan& p) { find(p, 0, ActionKind::kSend).after = {99}; }},
      {"invariant 4: stage 0, action 2: embedding is not whole", two_stages(3),
       [](StepPlan& p) { find(p, 0, ActionKind::kPass).after.clear(); }},
      {"a third unit is whole", two_stages(3),
       [](StepPlan& p) { find(p, 0, ActionKind::kGather, 3).after.clear(); }},
      {"invariant 5: stage 0", two_stages(2),
       [](StepPlan& p) { find(p, 0, ActionKind::kReduce).after.clear(); }},
      {"reduces a bucket again", two_stages(0),
       [](StepPlan& p) {
         find(p, 0, ActionKind::kReduce, 1).what = find(p, 0, ActionKind::kReduce).what;
       }},
      {"does not wait for the backward pass of graph", two_groups(),
       [](StepPlan& p) { find(p, 0, ActionKind::kReduce).after = {0}; }},
      {"gradients of graph are not reduced", two_groups(),
       [](StepPlan& p) {
         p.buckets[static_cast<std::size_t>(find(p, 0, ActionKind::kReduce, 1).what)].over = {1};
       }},
      {"gradients of graph again", two_groups(),
       [](StepPlan& p) { find(p, 0, ActionKind::kPass, 1).reduces = true; }},
      {"gradients of graph are not reduced", all_inside(),
       [](StepPlan& p) { last_backward(p).reduces = false; }},
      {"stay until the end of the step", two_stages(0),
       [](StepPlan& p) {
         p.states.reduce = StateSharding::Reduce::kEndOfStep;
         find(p, 0, ActionKind::kPass).reduces = true;
       }},
      {"does not wait for the parameters of", two_stages(1, true),
       [](StepPlan& p) { find(p, 0, ActionKind::kPass).after.clear(); }},
      {"invariant 5: stage 0, action", two_stages(1),
       [](StepPlan& p) { p.roles[0].actions.back().after.clear(); }},
      {"invariant 6: stage 1", two_stages(0),
       [](StepPlan& p) { find(p, 1, ActionKind::kPass).after.clear(); }},
      {"invariant 6: stage 0", two_stages(0),
       [](StepPlan& p) { find(p, 0, ActionKind::kSend).after.clear(); }},
      {"invariant 6: stage 0, action 1: is of another slot", two_stages(0),
       [](StepPlan& p) {
         std::swap(find(p, 0, ActionKind::kSend, 0).micro_batch,
                   find(p, 0, ActionKind::kSend, 1).micro_batch);
       }},
      {"invariant 6: stage 0, forward 0 of chunk 0: does not send", two_stages(0),
       [](StepPlan& p) {
         Action& send = find(p, 0, ActionKind::kSend);
         send = {.kind = ActionKind::kSync};
       }},
      {"gives a buffer back that is not there", two_stages(0),
       [](StepPlan& p) { find(p, 0, ActionKind::kPass).takes = 0; }},
      {"invariant 7: stage 0 leaves", two_stages(2),
       [](StepPlan& p) { find(p, 0, ActionKind::kReduce).gives_back = 0; }},
      {"is of another slot", in_two_parts(),
       [](StepPlan& p) { find(p, 1, PassPart::kWeight).part = PassPart::kInput; }},
      {"does not wait for the backward pass of", in_two_parts(),
       [](StepPlan& p) { find(p, 1, ActionKind::kReduce).after.clear(); }},
      {"invariant 7: stage 1 leaves", in_two_parts(),
       [](StepPlan& p) { find(p, 1, PassPart::kWeight).gives_back = kHeld; }},
      {"invariant 8: stage 0", two_stages(0),
       [](StepPlan& p) { find(p, 0, ActionKind::kOptimizer).after.clear(); }},
      {"invariant 7: stage 0", offloaded(),
       [](StepPlan& p) { find(p, 0, ActionKind::kOffload).gives_back = 0; }},
      {"invariant 10: stage 0", offloaded(),
       [](StepPlan& p) { find(p, 0, ActionKind::kOffload).after.clear(); }},
      {"invariant 10: stage 0", offloaded(),
       [](StepPlan& p) { find(p, 0, ActionKind::kFetch).after.clear(); }},
      {"does not wait for the reduction", offloaded(),
       [](StepPlan& p) { find(p, 0, ActionKind::kOffloadGradients).after.clear(); }},
      {"invariant 10: stage 0", offloaded(),
       [](StepPlan& p) {
         for (Action& action : p.roles[0].actions) {
           if (action.kind != ActionKind::kPass || action.direction == Direction::kForward ||
               action.units != plan::UnitRange{1, 1})
             continue;
           std::erase_if(action.after, [&](ActionId id) {
             return p.roles[0].actions[static_cast<std::size_t>(id)].kind == ActionKind::kFetch;
           });
         }
       }},
  };
  for (const Broken& broken : cases) {
    StepPlan plan = broken.plan;
    EXPECT_TRUE(verify(plan).ok()) << broken.invariant;
    broken.change(plan);
    const auto fault = verify(plan);
    ASSERT_FALSE(fault.ok()) << broken.invariant << "\n" << to_text(plan);
    EXPECT_THAT(fault.error().message, HasSubstr(broken.invariant));
  }
}

// The first stage wants the gradient of micro-batch 0 before it makes micro-batch 1, which the
// second stage wants before it makes that gradient.
Status wait_for_each_other(Draft& draft) {
  for (DraftRole& role : draft.roles) std::swap(role.slots[1], role.slots[2]);
  return {};
}

TEST(VerifyPlan, FindsRolesThatWaitForEachOther) {
  Strategy strategy = tiny_strategy(2, 3);
  strategy.framework.value.pipeline_transfers = PipelineTransfers::kOverlapped;
  std::vector<Planner> with_another(planners().begin(), planners().end());
  with_another.push_back({"wait for each other", wait_for_each_other});
  const auto plan = value_of(make_plan(tiny_parts(strategy, 6), strategy, with_another));
  EXPECT_THAT(message_of(verify(plan)), HasSubstr("invariant 9: stage 0 waits for ever"));
}

TEST(VerifyPlan, PassesThePlansOfRandomStrategies) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const Training training = random_training(random, 48);
    const auto plan = value_of(lower::plan_of(training.model, training.strategy));
    const auto fault = verify(plan);
    ASSERT_TRUE(fault.ok()) << seed << ": " << fault.error().message << "\n" << to_text(plan);
  }
}

}  // namespace
}  // namespace foreshard::plan
