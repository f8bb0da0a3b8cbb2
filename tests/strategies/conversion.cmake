foreshard_test(conversion_test
  SOURCES conversion/conversion_test.cc
  DEPS foreshard_conversion foreshard_lower rapidcheck::rapidcheck)
