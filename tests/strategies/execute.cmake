foreshard_test(execute_test
  SOURCES execute/conversions_test.cc execute/reshard_test.cc execute/within_mesh_test.cc
  DEPS foreshard_oracle)
foreshard_test(many_conversions_test SLOW
  SOURCES execute/many_conversions_test.cc
  DEPS foreshard_oracle)
foreshard_test(step_test
  SOURCES execute/step_test.cc execute/compare.cc
  DEPS foreshard_oracle fmt::fmt)
foreshard_test(hybrids_test
  SOURCES execute/hybrids_test.cc execute/compare.cc
  DEPS foreshard_oracle fmt::fmt)
foreshard_test(encoders_test
  SOURCES execute/encoders_test.cc execute/compare.cc graph/encoder_models_test.cc
  DEPS foreshard_oracle fmt::fmt)
foreshard_test(optimizers_test
  SOURCES execute/optimizers_test.cc execute/compare.cc lower/optimizers_test.cc
  DEPS foreshard_oracle fmt::fmt)
foreshard_test(plans_test
  SOURCES execute/dependencies_test.cc execute/planner_test.cc execute/compare.cc
          lower/random_strategy.cc
  DEPS foreshard_oracle fmt::fmt)
foreshard_test(many_steps_test SLOW
  SOURCES execute/many_steps_test.cc execute/compare.cc lower/random_strategy.cc
  DEPS foreshard_oracle fmt::fmt)
foreshard_test(executed_graph_test
  SOURCES execute/graph_test.cc execute/operators_test.cc graph/operator_examples.cc
  DEPS foreshard_oracle fmt::fmt)
foreshard_test(many_graphs_test SLOW
  SOURCES execute/many_graphs_test.cc execute/units_test.cc graph/operator_examples.cc
  DEPS foreshard_oracle fmt::fmt)
