foreshard_test(comm_test
  SOURCES comm/algorithms_test.cc comm/clusters.cc comm/contract_test.cc comm/errors_test.cc
          comm/exchange_test.cc
          comm/parameters_test.cc comm/representative_test.cc
          comm/scale_test.cc comm/unequal_nodes_test.cc
  DEPS foreshard_comm ${RAPIDCHECK_LIBRARY})
foreshard_test(comm_nccl_test
  SOURCES comm/clusters.cc comm/nccl_algorithms_test.cc comm/nccl_estimate_test.cc comm/nccl_nodes.cc
          comm/nccl_search_test.cc
          comm/nccl_tables_test.cc
  DEPS foreshard_comm)
foreshard_test(comm_accuracy_test
  SOURCES comm/accuracy_test.cc
  DEPS foreshard_comm)
