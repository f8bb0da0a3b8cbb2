foreshard_test(plan_test
  SOURCES plan/plan_test.cc plan/verify_test.cc schedule/granular_test.cc lower/random_strategy.cc
  DEPS foreshard_lower fmt::fmt)
