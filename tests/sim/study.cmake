foreshard_test(study_test APART
  SOURCES study/break_even_test.cc study/deepseek_trace_test.cc study/disturbed_test.cc study/exchanges_test.cc study/expense_test.cc study/inputs_test.cc study/interval_test.cc study/measured_times_test.cc study/pool_test.cc
          study/study_test.cc study/unequal_nodes_test.cc
  DEPS foreshard_study ${RAPIDCHECK_LIBRARY})
if(FORESHARD_ONNX_FOUND)
  foreshard_test(graph_study_test
    SOURCES study/graph_study_test.cc ../strategies/onnx/models.cc
    DEPS foreshard_study ONNX::onnx)
endif()
foreshard_test(digests_test
  SOURCES study/digests_test.cc ../strategies/graph/operator_examples.cc
          ../strategies/lower/random_strategy.cc
  DEPS foreshard_search foreshard_digest)
foreshard_test(sensitivity_test SLOW
  SOURCES study/sensitivity_test.cc compute/toy_device.cc simulate/random_cluster.cc ../strategies/lower/random_strategy.cc
  DEPS foreshard_study foreshard_lower)
foreshard_test(draws_test
  SOURCES study/draws_test.cc
  DEPS foreshard_study)
