foreshard_test(engine_test
  SOURCES engine/event_queue_test.cc engine/events_test.cc engine/fluid_test.cc engine/oracle.cc
    engine/properties_test.cc engine/simgrid_test.cc engine/slopes_test.cc engine/workload_test.cc
  DEPS foreshard_engine)
foreshard_test(engine_fabric_test
  SOURCES engine/fabric_test.cc engine/oracle.cc
  DEPS foreshard_engine foreshard_comm)
