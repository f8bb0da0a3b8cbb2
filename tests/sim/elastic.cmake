foreshard_test(elastic_test
  SOURCES elastic/history_test.cc elastic/run_test.cc
  DEPS foreshard_elastic fmt::fmt)
foreshard_test(shipped_elastic_test SLOW
  SOURCES elastic/shipped_test.cc
  DEPS foreshard_elastic)
