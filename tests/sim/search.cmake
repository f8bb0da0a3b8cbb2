foreshard_test(search_space_test
  SOURCES search/cuts_test.cc search/family_test.cc search/peaks_test.cc search/shape_test.cc search/space_test.cc search/times_test.cc
  DEPS foreshard_search rapidcheck::rapidcheck)
foreshard_test(search_test APART
  SOURCES search/search_optimum_test.cc search/search_test.cc search/shares_test.cc search/team_test.cc search/uneven_test.cc
  DEPS foreshard_search nlohmann_json::nlohmann_json rapidcheck::rapidcheck)
foreshard_test(graph_search_test
  SOURCES search/graph/search_test.cc search/graph/solve_test.cc
  DEPS foreshard_graph_search nlohmann_json::nlohmann_json)
foreshard_test(graph_tables_test SLOW
  SOURCES search/graph/tables_test.cc ../strategies/graph/operator_examples.cc
  DEPS foreshard_graph_search)
foreshard_test(graph_stages_test SLOW
  SOURCES search/graph/stages_test.cc
  DEPS foreshard_graph_search)
foreshard_test(search_bound_test SLOW
  SOURCES search/bound_test.cc ../strategies/lower/random_strategy.cc
  DEPS foreshard_search)
