# The host executor. host_rank is a rank of a Program by itself, for tests that start several under
# mpirun.
if(FORESHARD_HOST_REPLAY_FOUND)
  set(here replay/host)
  foreshard_test(replay_host_collective_test
    SOURCES ${here}/collective_test.cc ${here}/memory_wire.cc
    DEPS foreshard_replay_host ${RAPIDCHECK_LIBRARY})
  foreshard_test(replay_host_kernels_test
    SOURCES ${here}/kernels_test.cc ${here}/pass_test.cc
    DEPS foreshard_replay_host)
  foreshard_test(replay_host_executor_test
    SOURCES ${here}/executor_test.cc ${here}/memory_wire.cc
            ../strategies/lower/random_strategy.cc
    DEPS foreshard_replay_host foreshard_lower)
  add_executable(host_rank ${here}/rank_main.cc)
  target_link_libraries(host_rank PRIVATE foreshard_replay_host MPI::MPI_CXX)
endif()
