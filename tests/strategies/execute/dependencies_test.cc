// Every kind of dependency of a step plan is needed: without it some order of the actions leads to
// wrong numbers, and the verifier names the invariant. Of those that are there for the sake of time
// alone no order does.

#include "tests/strategies/execute/serial_is_sharded.h"
#include "tests/strategies/execute/tiny_models.h"
#include "tests/strategies/lower/random_strategy.h"
#include "tests/test.h"

#include "strategies/program/lower/lower.h"

namespace foreshard::execute::dependencies_test {

using plan::Action;
using plan::ActionKind;
using plan::StepPlan;

constexpr std::uint64_t kOrders = 8;

// Whether `later` is to wait for `earlier` no more.
using Drop = std::function<bool(const Action& later, const Action& earlier)>;

Drop between(ActionKind earlier, ActionKind later) {
  return [=](const Action& b, const Action& a) { return a.kind == earlier && b.kind == later; };
}

// The plan without these dependencies, and how many there were.
std::pair<StepPlan, int> without(StepPlan plan, const Drop& drop) {
  int dropped = 0;
  for (plan::Role& role : plan.roles) {
    for (Action& action : role.actions)
      dropped += static_cast<int>(std::erase_if(action.after, [&](plan::ActionId earlier) {
        return drop(action, role.actions[static_cast<std::size_t>(earlier)]);
      }));
  }
  return {std::move(plan), dropped};
}

StepPlan plan_of(const Model& model, const Strategy& strategy) {
  return value_of(lower::plan_of(model, strategy));
}

// In how many orders the step is another than the serial one.
int wrong_orders(const Model& model, const Strategy& strategy, const StepPlan& plan) {
  const StepResult serial = executed(model, serial_of(strategy));
  int wrong = 0;
  for (std::uint64_t order = 0; order < kOrders; ++order) {
    const auto result = execute_step(model, strategy, plan, {.order = order});
    if (!result || !compare(serial, *result, kTolerance).faults.empty()) ++wrong;
  }
  return wrong;
}

struct Case {
  std::string name;
  Drop drop;
  Strategy strategy;
  std::string invariant{};  // of step_plan.h; empty: none speaks of it
  bool shows = true;
};

Strategy zero(std::int64_t stage, std::int64_t tensor, std::int64_t pipeline, std::int64_t data) {
  Strategy s = tiny_strategy(tensor, pipeline, data);
  s.zero_stage = stage;
  s.sequence_parallel = tensor > 1;
  return s;
}

Strategy gathered(bool early) {
  Strategy s = zero(1, 1, 1, 2);
  s.framework.value.overlap_parameter_gather = early;
  return s;
}

Strategy pipeline(PipelineTransfers transfers, std::vector<std::int64_t> layers) {
  Strategy s = tiny_strategy(1, static_cast<std::int64_t>(layers.size()), 1);
  s.layers_per_stage = std::move(layers);
  s.framework.value.pipeline_transfers = transfers;
  return s;
}

Strategy reduced(GradientReduction reduction) {
  Strategy s = tiny_strategy(1, 1, 2);
  s.framework.value.gradient_reduction = reduction;
  return s;
}

// Interleaved: stages in a ring. Each has two chunks.
Strategy ring(std::vector<std::int64_t> layers, bool host_sync) {
  Strategy s = tiny_strategy(1, 2, 1, 8);
  s.layers_per_stage = std::move(layers);
  s.schedule = "interleaved";
  s.virtual_stages = 2;
  s.framework.value.pipeline_host_sync = host_sync;
  return s;
}

std::vector<Case> cases() {
  using enum ActionKind;
  constexpr auto kOverlapped = PipelineTransfers::kOverlapped;
  constexpr auto kBlocking = PipelineTransfers::kBlocking;
  return {
      {"gather -> pass, ZeRO 3", between(kGather, kPass), zero(3, 1, 1, 2), "invariant 4"},
      {"gather -> pass, at the start", between(kGather, kPass), gathered(true), "invariant 5"},
      {"receive -> pass", between(kReceive, kPass), pipeline(kOverlapped, {2, 2}), "invariant 6"},
      {"receive -> send", between(kReceive, kSend), pipeline(kOverlapped, {2, 0, 2}),
       "invariant 6"},
      {"pass -> send", between(kPass, kSend), pipeline(kOverlapped, {2, 2}), "invariant 6"},
      {"pass -> reduce, by the layer", between(kPass, kReduce),
       reduced(GradientReduction::kOverlapped), "invariant 5"},
      {"pass -> reduce, at the end", between(kPass, kReduce),
       reduced(GradientReduction::kAfterBackward), "invariant 5"},
      {"pass -> reduce, ZeRO 2", between(kPass, kReduce), zero(2, 1, 1, 2), "invariant 5"},
      {"reduce -> optimizer", between(kReduce, kOptimizer), reduced(GradientReduction::kOverlapped),
       "invariant 8"},
      {"copies -> optimizer", between(kReduceCopies, kOptimizer), zero(0, 2, 1, 2), "invariant 8"},
      {"copies -> optimizer, tied", between(kReduceCopies, kOptimizer), zero(0, 1, 2, 1),
       "invariant 8"},
      {"pass -> copies", between(kPass, kReduceCopies), zero(0, 2, 1, 1), "invariant 8"},
      {"reduce -> copies", between(kReduce, kReduceCopies), zero(0, 2, 1, 2), "invariant 8"},
      {"pass -> gather, the third unit", between(kPass, kGather), zero(3, 1, 1, 2), "invariant 4"},
      {"reduce -> pass, the third gradient", between(kReduce, kPass), zero(2, 1, 1, 2),
       "invariant 5"},
      {"optimizer -> gather", between(kOptimizer, kGather), gathered(false), "invariant 5"},
      {"send -> pass, blocking", between(kSend, kPass), pipeline(kBlocking, {2, 2}), ""},
      {"send -> optimizer, blocking", between(kSend, kOptimizer), pipeline(kBlocking, {2, 2}), "",
       false},
      {"pass -> receive, blocking", between(kPass, kReceive), pipeline(kBlocking, {2, 2}), "",
       false},
      // Through a chunk without layers: the next pass waits for its send alone.
      {"send -> send, blocking", between(kSend, kSend), ring({2, 1, 0, 1}, false), ""},
      // The sync waits for all then, which includes sends that the other stage cannot receive yet.
      {"receive -> sync, in a ring", between(kReceive, kSync), ring({1, 1, 1, 1}, true),
       "invariant 9"},
  };
}

TEST(Dependencies, AreAllNeeded) {
  const Model model = tiny_gpt();
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    ASSERT_THAT(faults_in(one.strategy, model, one.strategy.devices()), IsEmpty());
    const StepPlan plan = plan_of(model, one.strategy);
    EXPECT_TRUE(plan::verify(plan).ok());
    EXPECT_EQ(wrong_orders(model, one.strategy, plan), 0);
    const auto [mutated, dropped] = without(plan, one.drop);
    EXPECT_GT(dropped, 0);
    const int wrong = wrong_orders(model, one.strategy, mutated);
    if (one.shows) {
      EXPECT_GT(wrong, 0);
    } else {
      EXPECT_EQ(wrong, 0);
    }
    const auto fault = plan::verify(mutated);
    if (one.invariant.empty()) {
      EXPECT_TRUE(fault.ok());
    } else {
      ASSERT_FALSE(fault.ok());
      EXPECT_THAT(fault.error().message, HasSubstr(one.invariant + ":"));
    }
    std::cout << fmt::format("without {} ({}): wrong in {} of {} orders; {}\n", one.name, dropped,
                             wrong, kOrders, fault.ok() ? "no invariant" : fault.error().message);
  }
}

// Whatever waits for what, in plans of random strategies, is in the list above: what is on one lane
// waits anyway.
TEST(Dependencies, AreAllListed) {
  constexpr std::uint32_t kSeed = 20'211;
  std::mt19937 random(kSeed);
  std::map<std::pair<ActionKind, ActionKind>, std::string> found;  // and where
  for (int i = 0; i < 400; ++i) {
    const Training training = random_training(random, 16);
    const StepPlan plan = plan_of(training.model, training.strategy);
    for (const plan::Role& role : plan.roles) {
      for (const Action& later : role.actions) {
        for (const plan::ActionId id : later.after) {
          const Action& earlier = role.actions[static_cast<std::size_t>(id)];
          if (plan::lane_of(later) != plan::lane_of(earlier))
            found.emplace(std::pair(earlier.kind, later.kind), describe(training));
        }
      }
    }
  }
  EXPECT_GE(found.size(), 14U);
  for (const auto& [kinds, where] : found) {
    const Action earlier{.kind = kinds.first, .after = {}};
    const Action later{.kind = kinds.second, .after = {}};
    EXPECT_TRUE(
        std::ranges::any_of(cases(), [&](const Case& one) { return one.drop(later, earlier); }))
        << static_cast<int>(kinds.first) << " -> " << static_cast<int>(kinds.second) << ": "
        << where;
  }
}

// What a sync waits for has ended before anything behind it is issued: it stands for a dependency.
// Where all dependencies are there, it is a matter of time.
TEST(Dependencies, SyncsStandForOthers) {
  const Model model = tiny_gpt();
  Strategy strategy = pipeline(PipelineTransfers::kOverlapped, {2, 2});
  strategy.framework.value.pass_host_sync = true;
  const StepPlan plan = plan_of(model, strategy);
  const auto [synced, dropped] = without(plan, between(ActionKind::kPass, ActionKind::kSend));
  EXPECT_GT(dropped, 0);
  EXPECT_TRUE(plan::verify(synced).ok());
  EXPECT_EQ(wrong_orders(model, strategy, synced), 0);

  // Syncs that wait for the first action alone.
  const auto unsynced = [](StepPlan from) {
    for (plan::Role& role : from.roles)
      for (Action& action : role.actions)
        if (action.kind == ActionKind::kSync) action.after = {0};
    return from;
  };
  EXPECT_TRUE(plan::verify(unsynced(plan)).ok());
  EXPECT_EQ(wrong_orders(model, strategy, unsynced(plan)), 0);
  EXPECT_THAT(message_of(plan::verify(unsynced(synced))), HasSubstr("invariant 6:"));
  EXPECT_GT(wrong_orders(model, strategy, unsynced(synced)), 0);
}

}  // namespace foreshard::execute::dependencies_test
