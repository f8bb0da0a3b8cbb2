#include "validate/replay/executor.h"

namespace foreshard::replay {

Result<std::unique_ptr<Executor>> make_host_executor(const ExecutorOptions& /*options*/,
                                                     Store& /*store*/) {
  return Error{Error::Code::kUnsupported,
               "this foreshard-replay was built without MPI and BLAS, so it cannot replay on the "
               "host; install them (Debian: libopenmpi-dev openmpi-bin libopenblas-serial-dev) and "
               "build again"};
}

}  // namespace foreshard::replay
