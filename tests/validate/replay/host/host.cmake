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
  add_executable(host_rank ${here}/rank_main.cc)
  target_link_libraries(host_rank PRIVATE foreshard_replay_host MPI::MPI_CXX)
endif()
