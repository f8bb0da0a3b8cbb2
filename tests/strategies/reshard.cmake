foreshard_test(reshard_test
  SOURCES reshard/reshard_test.cc
  DEPS foreshard_reshard)
