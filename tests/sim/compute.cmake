foreshard_test(compute_test
  SOURCES compute/catalogue_test.cc compute/device_type_test.cc compute/evidence_test.cc compute/kernel_test.cc
    compute/measured_test.cc compute/operator_properties_test.cc compute/operator_time_test.cc compute/toy_device.cc
  DEPS foreshard_compute ${RAPIDCHECK_LIBRARY})
foreshard_test(compute_accuracy_test
  SOURCES compute/accuracy_test.cc
  DEPS foreshard_compute foreshard_graph)
