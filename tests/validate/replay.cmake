foreshard_test(replay_plan_test
  SOURCES replay/pattern_test.cc replay/plan_test.cc ../strategies/lower/random_strategy.cc
          ../strategies/program_ir/samples.cc
  DEPS foreshard_replay_core foreshard_lower)
foreshard_test(replay_pass_test
  SOURCES replay/pass_oracle.cc replay/pass_test.cc
  DEPS foreshard_replay_core)
foreshard_test(replay_store_test RUN_SERIAL
  SOURCES replay/store_test.cc
  DEPS foreshard_replay_core)
include(${CMAKE_CURRENT_LIST_DIR}/replay/host/host.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/replay/gpu/gpu.cmake)
foreshard_test(replay_bundle_test SLOW
  SOURCES replay/bundle_test.cc
  DEPS foreshard_replay_bundle)
if(FORESHARD_CUDA_FOUND)
  target_compile_definitions(replay_bundle_test PRIVATE FORESHARD_NVCC="${CMAKE_CUDA_COMPILER}"
    FORESHARD_NCCL_INCLUDE="${NCCL_INCLUDE_DIR}")
endif()
foreshard_test(replay_session_test
  SOURCES replay/arguments_test.cc replay/sampling_test.cc replay/statistics_test.cc
          replay/together_test.cc replay/watchdog_test.cc
  DEPS foreshard_replay_core)
# Processes and wall-clock time: nothing else should run beside them.
add_executable(fake_replay replay/fake_replay.cc)
target_link_libraries(fake_replay PRIVATE foreshard_replay_core)
foreshard_test(replay_run_test SLOW RUN_SERIAL
  SOURCES replay/run_test.cc
  DEPS foreshard_replay_core)
target_compile_definitions(replay_run_test PRIVATE FAKE_REPLAY="$<TARGET_FILE:fake_replay>")
add_dependencies(replay_run_test fake_replay)
if(FORESHARD_HOST_REPLAY_FOUND)
  foreshard_test(replay_mpirun_test SLOW RUN_SERIAL
    SOURCES replay/mpirun_test.cc
    DEPS foreshard_program_ir)
  target_compile_definitions(replay_mpirun_test PRIVATE
    FORESHARD_REPLAY="$<TARGET_FILE:foreshard-replay>" FORESHARD_PROGRAM="$<TARGET_FILE:foreshard>")
  add_dependencies(replay_mpirun_test foreshard foreshard-replay)
endif()
