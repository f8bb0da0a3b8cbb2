// Passes over elements. A thread takes kPack neighbours.
#include "validate/replay/gpu/numbers.h"
#include "validate/replay/gpu/passes.h"
#include "validate/replay/pass/elements.h"

namespace foreshard::replay::gpu {

cudaError_t internal::launch_elements(const Pass& pass, std::span<void* const> operands,
                                      cudaStream_t stream) {
  return with_floating_type(pass.dtype, [&]<class T>(std::type_identity<T>) {
    cudaError_t status = cudaSuccess;
    const bool known = with_elements<T, Float8>(
        pass, operands, [&](const auto& body, std::int64_t n, std::int64_t together) {
          if (status == cudaSuccess) status = map(body, n, together % kPack == 0, stream);
        });
    return known ? status : cudaErrorInvalidValue;
  });
}

}  // namespace foreshard::replay::gpu
