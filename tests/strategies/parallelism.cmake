foreshard_test(parallelism_test
  SOURCES parallelism/expert_load_test.cc parallelism/layers_test.cc parallelism/parameters_test.cc parallelism/reserve_test.cc
          parallelism/strategy_test.cc
  DEPS foreshard_parallelism)
