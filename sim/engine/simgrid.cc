#include "sim/engine/workload.h"
namespace foreshard::engine {
Result<Timeline> run_simgrid(const Workload&) {
  return Error{Error::Code::kUnsupported, "not yet built"};
}
}  // namespace foreshard::engine
