foreshard_test(engine_test
  SOURCES engine/fluid_test.cc
  DEPS foreshard_engine ${RAPIDCHECK_LIBRARY})
