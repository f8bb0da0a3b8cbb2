foreshard_test(execute_test
  SOURCES execute/conversions_test.cc
  DEPS foreshard_execute)
foreshard_test(many_conversions_test SLOW
  SOURCES execute/many_conversions_test.cc
  DEPS foreshard_execute)
