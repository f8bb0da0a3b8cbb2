foreshard_test(replay_plan_test
  SOURCES replay/pattern_test.cc replay/plan_test.cc ../strategies/lower/random_strategy.cc
          ../strategies/program_ir/samples.cc
  DEPS foreshard_replay_core foreshard_lower)
foreshard_test(replay_store_test
  SOURCES replay/identity_test.cc replay/store_test.cc
  DEPS foreshard_replay_core)
include(${CMAKE_CURRENT_LIST_DIR}/replay/host/host.cmake)
