// Selects the GPU of a rank, or says that there is none.
#include <cstdlib>
#include <string>

#include "validate/replay/gpu/cuda_error.h"
#include "validate/replay/gpu/gpu_executor.h"

namespace foreshard::replay {

Result<std::unique_ptr<Executor>> make_gpu_executor(const ExecutorOptions& options, Store& store) {
  const auto none = [](const std::string& why) {
    return Error{Error::Code::kUnsupported,
                 "no GPU: " + why + "; replay on processors with --host, or where there is a GPU"};
  };
  // The number of work queues that streams share: 8 by default, at most 32 (CUDA C++ Programming
  // Guide, environment variables). A kernel that waits would hold up other kernels in its queue.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);  // NOLINT(concurrency-mt-unsafe): no thread yet
  int count = 0;
  if (const auto status = cudaGetDeviceCount(&count); status != cudaSuccess)
    return none("cudaGetDeviceCount says " + gpu::said(status));
  if (count == 0) return none("cudaGetDeviceCount says 0");
  // A launcher may show each rank only its own device. Whether two ranks see the same device is
  // checked among all ranks (Executor::sole_device).
  const int device = options.shared || count == 1 ? 0 : options.local_rank;
  if (device < 0 || device >= count)
    return Error{Error::Code::kInvalidInput,
                 "this process is number " + std::to_string(options.local_rank) +
                     " of its host, which shows " + std::to_string(count) +
                     " GPUs: start as many as there are GPUs, show each process its own (srun "
                     "--gpus-per-task=1), or let them share one with --shared"};
  if (const auto status = cudaSetDevice(device); status != cudaSuccess)
    return none("cudaSetDevice(" + std::to_string(device) + ") says " + gpu::said(status));
  return std::unique_ptr<Executor>(std::make_unique<gpu::GpuExecutor>(options, store, device));
}

}  // namespace foreshard::replay
