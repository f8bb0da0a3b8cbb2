# The host executor. host_rank is a rank of a Program by itself, for tests that start several under
# mpirun.
if(FORESHARD_HOST_REPLAY_FOUND)
  set(here replay/host)
  foreshard_test(replay_host_collective_test
    SOURCES ${here}/collective_test.cc ${here}/memory_wire.cc
    DEPS foreshard_replay_host ${RAPIDCHECK_LIBRARY})
  foreshard_test(replay_host_kernels_test
    SOURCES ${here}/kernels_test.cc
    DEPS foreshard_replay_host)
  foreshard_test(replay_host_streams_test
    SOURCES ${here}/memory_test.cc ${here}/streams_test.cc ../strategies/program_ir/samples.cc
    DEPS foreshard_replay_host)
  foreshard_test(replay_host_executor_test
    SOURCES ${here}/executor_test.cc ${here}/memory_wire.cc
            ../strategies/lower/random_strategy.cc
    DEPS foreshard_replay_host foreshard_lower)

  add_executable(host_rank ${here}/rank_main.cc)
  target_link_libraries(host_rank PRIVATE foreshard_replay_host MPI::MPI_CXX)
  if(TARGET foreshard-replay)
    foreshard_test(replay_host_mpi_test SLOW RUN_SERIAL
      SOURCES ${here}/mpi_test.cc
      DEPS foreshard_lower)
    target_compile_definitions(replay_host_mpi_test PRIVATE
      FORESHARD_MPIEXEC="${MPIEXEC_EXECUTABLE}" FORESHARD_HOST_RANK="$<TARGET_FILE:host_rank>"
      FORESHARD_REPLAY="$<TARGET_FILE:foreshard-replay>")
    add_dependencies(replay_host_mpi_test host_rank foreshard-replay)
  endif()
endif()
