foreshard_test(sweep_test APART
  SOURCES sweep/comparison_test.cc sweep/crossings_test.cc sweep/grid_test.cc sweep/ranking_test.cc sweep/run_test.cc
  DEPS foreshard_sweep nlohmann_json::nlohmann_json)
foreshard_test(shipped_sweeps_test SLOW
  SOURCES sweep/shipped_test.cc
  DEPS foreshard_sweep)
