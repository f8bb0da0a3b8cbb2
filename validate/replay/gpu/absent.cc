// What a build without CUDA offers.
#include "validate/replay/executor.h"

namespace foreshard::replay {

Result<std::unique_ptr<Executor>> make_gpu_executor(const ExecutorOptions&, Store&) {
  return Error{
      Error::Code::kUnsupported,
      "this foreshard-replay was built without CUDA; build it where the CUDA Toolkit 12 or "
      "later (nvcc) and nccl.h are, or replay on processors with --host"};
}

}  // namespace foreshard::replay
