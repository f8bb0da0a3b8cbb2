foreshard_test(memory_test SOURCES memory/timeline_test.cc
  DEPS foreshard_memory ${RAPIDCHECK_LIBRARY})
