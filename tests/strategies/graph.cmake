foreshard_test(graph_test
  SOURCES graph/model_test.cc graph/operator_test.cc graph/sharding_test.cc
  DEPS foreshard_graph)
foreshard_test(layout_test
  SOURCES graph/layout_text_test.cc
  DEPS foreshard_graph)
