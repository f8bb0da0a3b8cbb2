foreshard_test(parallelism_test
  SOURCES parallelism/strategy_test.cc
  DEPS foreshard_parallelism)
