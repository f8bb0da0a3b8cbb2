#include "validate/replay/gpu/passes.h"

#include "validate/replay/pass/operands.h"

namespace foreshard::replay::gpu {

cudaError_t launch_pass(const Pass& given, std::span<void* const> operands, cudaStream_t stream) {
  const Pass pass = in_floating_point(given);
  if (pass.rows == 0) return cudaSuccess;
  for (const auto family :
       {internal::launch_elements, internal::launch_rows, internal::launch_columns})
    if (const cudaError_t status = family(pass, operands, stream); status != cudaErrorInvalidValue)
      return status;
  return cudaErrorInvalidValue;
}

}  // namespace foreshard::replay::gpu
