foreshard_test(replay_plan_test
  SOURCES replay/pattern_test.cc replay/plan_test.cc ../strategies/lower/random_strategy.cc
          ../strategies/program_ir/samples.cc
  DEPS foreshard_replay_core foreshard_lower)
