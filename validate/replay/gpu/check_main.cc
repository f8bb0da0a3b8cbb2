// foreshard-gpu-check: runs the checks of checks.h without a test framework. Exit codes: 0: all
// passed; 1: some failed (each is named); 2: there is no GPU.
#include <cstdio>
#include <cuda_runtime_api.h>
#include <string_view>

#include "validate/replay/gpu/checks.h"
#include "validate/replay/gpu/cuda_error.h"

namespace gpu = foreshard::replay::gpu;

int main(int count, char** arguments) {
  const std::string_view wanted = count > 1 ? arguments[1] : "";
  if (wanted == "--help") {
    std::puts(
        "foreshard-gpu-check [WORDS]\n"
        "Runs small kernels of each kind on GPU 0 and compares with the host; with WORDS only\n"
        "those whose description contains them (\"attention_fwd\").\n"
        "Exit 0: all passed; 1: some failed; 2: there is no GPU.");
    return 0;
  }
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "no GPU: cudaGetDeviceCount says %s\n",
                 status == cudaSuccess ? "0" : gpu::said(status).c_str());
    return 2;
  }
  int passed = 0;
  int failed = 0;
  for (const auto& checks : {gpu::pass_checks(), gpu::attention_checks(), gpu::gemm_checks()})
    for (const gpu::Check& check : checks) {
      if (check.name.find(wanted) == std::string::npos) continue;
      const auto fault = check.run();
      if (!fault) {
        ++passed;
        continue;
      }
      ++failed;
      std::printf("FAILED %s: %s\n", check.name.c_str(), fault->c_str());
      // After a device fault nothing else can run.
      if (cudaDeviceSynchronize() != cudaSuccess) {
        std::printf("the device does not answer any more: stopped\n");
        std::printf("%d passed, %d failed, the rest did not run\n", passed, failed);
        return 1;
      }
    }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
