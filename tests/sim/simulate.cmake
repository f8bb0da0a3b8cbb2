foreshard_test(simulate_test
  SOURCES simulate/disturb_test.cc simulate/pipeline_test.cc simulate/ring_test.cc simulate/simulate_test.cc
          simulate/small.cc
  DEPS foreshard_lower foreshard_schedule foreshard_simulate)
foreshard_test(simulate_exact_test
  SOURCES simulate/disturb_exact_test.cc simulate/exact_test.cc simulate/random_cluster.cc simulate/random_program.cc
          compute/toy_device.cc ../strategies/lower/random_strategy.cc
  DEPS foreshard_simulate foreshard_lower)
foreshard_test(simulate_offload_test
  SOURCES simulate/offload_test.cc simulate/small.cc compute/toy_device.cc
  DEPS foreshard_simulate foreshard_lower)
foreshard_test(simulate_studies_test SLOW
  SOURCES simulate/studies_test.cc
  DEPS foreshard_study)
foreshard_test(simulate_granularity_test
  SOURCES simulate/granularity_test.cc simulate/small.cc simulate/random_cluster.cc simulate/random_program.cc
          compute/toy_device.cc
  DEPS foreshard_simulate)
foreshard_test(simulate_folding_test
  SOURCES simulate/folding_test.cc simulate/random_program.cc compute/toy_device.cc
          ../strategies/lower/random_strategy.cc
  DEPS foreshard_simulate foreshard_lower)
foreshard_test(simulate_cost_test
  SOURCES simulate/cost_test.cc simulate/sharing_test.cc simulate/small.cc
  DEPS foreshard_study)
