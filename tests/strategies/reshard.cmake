foreshard_test(reshard_test
  SOURCES reshard/direct_test.cc reshard/moves_test.cc reshard/table_test.cc
  DEPS foreshard_reshard fmt::fmt)
