foreshard_test(graph_test
  SOURCES graph/implementation_test.cc graph/mamba_test.cc graph/model_test.cc graph/operator_test.cc graph/sharding_test.cc
  DEPS foreshard_graph)
foreshard_test(layout_test
  SOURCES graph/layout_text_test.cc
  DEPS foreshard_graph)
foreshard_test(operators_test
  SOURCES graph/operators_contract_test.cc graph/operator_examples.cc graph/distribute_test.cc
    graph/rule_test.cc graph/graph_config_test.cc
  DEPS foreshard_graph rapidcheck::rapidcheck)
target_include_directories(operators_test PRIVATE graph)
foreshard_test(annotate_test
  SOURCES graph/annotate_test.cc
  DEPS foreshard_graph)
