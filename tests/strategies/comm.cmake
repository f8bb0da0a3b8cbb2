foreshard_test(comm_test
  SOURCES comm/algorithms_test.cc comm/clusters.cc comm/contract_test.cc comm/errors_test.cc
          comm/exchange_test.cc
          comm/parameters_test.cc comm/representative_test.cc
          comm/scale_test.cc
  DEPS foreshard_comm ${RAPIDCHECK_LIBRARY})
foreshard_test(comm_accuracy_test
  SOURCES comm/accuracy_test.cc
  DEPS foreshard_comm)
