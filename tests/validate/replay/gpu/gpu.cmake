set(here ${CMAKE_CURRENT_LIST_DIR})
if(NOT FORESHARD_CUDA_FOUND)
  return()
endif()
# The kernels' sources, compiled for the host: their results and the executor's order are tested where
# there is no GPU (validate/replay/gpu/emulation.h).
set(gpu ${PROJECT_SOURCE_DIR}/validate/replay/gpu)
set(emulated)
foreach(kernels attention_backward attention_forward pass_columns pass_elements pass_rows utility)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/emulated_${kernels}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"validate/replay/gpu/${kernels}.cu\"\n")
  list(APPEND emulated ${source})
endforeach()
add_library(foreshard_replay_gpu_emulated STATIC ${emulated}
  ${here}/fake_nccl.cc ${here}/fake_runtime.cc ${here}/fake_gemms.cc
  ${gpu}/attention.cc ${gpu}/check_harness.cc ${gpu}/checks.cc
  ${gpu}/communicators.cc ${gpu}/emulation.cc ${gpu}/gpu_executor.cc ${gpu}/gpu_verify.cc
  ${gpu}/library.cc ${gpu}/make.cc ${gpu}/memory.cc ${gpu}/nvml.cc ${gpu}/operands.cc
  ${gpu}/passes.cc ${gpu}/proposals.cc)
find_package(Boost 1.74 REQUIRED COMPONENTS context)
target_link_libraries(foreshard_replay_gpu_emulated
  PUBLIC foreshard_replay_core ${CMAKE_DL_LIBS} PRIVATE Boost::context)
target_include_directories(foreshard_replay_gpu_emulated SYSTEM PUBLIC
  ${CUDAToolkit_INCLUDE_DIRS} ${NCCL_INCLUDE_DIR})
target_compile_options(foreshard_replay_gpu_emulated PUBLIC -Wno-unknown-pragmas)
foreshard_test(replay_gpu_emulated_test
  SOURCES ${here}/executor_test.cc ${here}/kernels_test.cc ${here}/memory_test.cc
          ${here}/proposals_test.cc
  DEPS foreshard_replay_gpu_emulated)

# The driver's library, for one test of it.
add_library(fake_nvml MODULE ${here}/fake_nvml.cc)
set_target_properties(fake_nvml PROPERTIES OUTPUT_NAME nvidia-ml SUFFIX .so.1
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fake_nvml)
target_compile_definitions(replay_gpu_emulated_test PRIVATE
  FAKE_NVML_FOLDER="${CMAKE_CURRENT_BINARY_DIR}/fake_nvml")
add_dependencies(replay_gpu_emulated_test fake_nvml)

# On a real GPU; skipped where there is none. `ctest -L gpu`.
foreshard_test(replay_gpu_test GPU
  SOURCES ${here}/device_test.cc
  DEPS foreshard_replay_gpu_checks)
target_compile_definitions(replay_gpu_test PRIVATE FORESHARD_REPLAY="$<TARGET_FILE:foreshard-replay>")
add_dependencies(replay_gpu_test foreshard-replay)
