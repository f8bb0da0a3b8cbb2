# The replay without a GPU: what every rank does (replay_test), on hosts and, by kernels that are
# compiled for hosts, on GPUs. Processes and wall-clock time: nothing else should run beside those.
add_executable(fake_replay ${CMAKE_CURRENT_LIST_DIR}/fake_replay.cc)
target_link_libraries(fake_replay PRIVATE foreshard_replay_core)
set(files "/replay/gpu/(executor|kernels|memory|proposals|device)_test")
set(layers foreshard_replay_bundle foreshard_replay_core)
if(FORESHARD_HOST_REPLAY_FOUND)
  list(APPEND layers foreshard_replay_host)
  # A rank of a Program by itself, for tests that start several under mpirun.
  add_executable(host_rank ${CMAKE_CURRENT_LIST_DIR}/host/rank_main.cc)
  target_link_libraries(host_rank PRIVATE foreshard_replay_host MPI::MPI_CXX)
else()
  string(APPEND files "|/replay/host/|/replay/mpirun_test")
endif()
layer_test(replay_test
  FOLDERS validate/replay WITHOUT "${files}" PROGRAM APART DEPS foreshard_test_support ${layers}
  SLOW Bundle.* Ptx.*
  SERIAL Addresses.* *AnyStore* LoneStore.* MeetingInAFolder.* TcpStore.*
  SLOW_SERIAL ForeshardReplay.* *HostReplay* OneRank.* Replays.* *UnderMpirun*)
target_compile_definitions(replay_test PRIVATE FAKE_REPLAY="$<TARGET_FILE:fake_replay>")
add_dependencies(replay_test fake_replay)
if(FORESHARD_CUDA_FOUND)
  target_compile_definitions(replay_test PRIVATE FORESHARD_NVCC="${CMAKE_CUDA_COMPILER}"
    FORESHARD_NCCL_INCLUDE="${NCCL_INCLUDE_DIR}")
endif()
if(FORESHARD_HOST_REPLAY_FOUND)
  target_sources(replay_test PRIVATE ${CMAKE_CURRENT_LIST_DIR}/host/memory_wire.cc)
  target_compile_definitions(replay_test PRIVATE FORESHARD_MPIEXEC="${MPIEXEC_EXECUTABLE}"
    FORESHARD_HOST_RANK="$<TARGET_FILE:host_rank>" FORESHARD_REPLAY="$<TARGET_FILE:foreshard-replay>")
  target_compile_definitions(validate_test PRIVATE FORESHARD_HOST_REPLAY)
  add_dependencies(replay_test host_rank foreshard-replay)
  add_dependencies(validate_test foreshard-replay)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/gpu/gpu.cmake)
