foreshard_test(elastic_test
  SOURCES elastic/history_test.cc
  DEPS foreshard_elastic)
