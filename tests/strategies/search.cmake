foreshard_test(search_space_test
  SOURCES search/memory_test.cc search/space_test.cc search/times_test.cc
  DEPS foreshard_search)
