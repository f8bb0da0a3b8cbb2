foreshard_test(lower_test APART
  SOURCES graph/operator_examples.cc lower/adapters_test.cc lower/attention_test.cc lower/context_test.cc lower/era_test.cc lower/exchanges_test.cc lower/experts_test.cc lower/forward_test.cc lower/frozen_test.cc lower/graph_bodies_test.cc lower/graph_test.cc lower/graph_units_test.cc
          lower/launches_test.cc lower/lower_test.cc lower/memory_test.cc lower/offload_test.cc lower/quantization_test.cc lower/prediction_test.cc lower/recompute_test.cc lower/random_strategy.cc lower/tables_test.cc lower/verified_test.cc
  DEPS foreshard_lower)
foreshard_test(rebatch_test
  SOURCES lower/batch_shares_test.cc lower/rebatch_test.cc
  DEPS foreshard_lower)
