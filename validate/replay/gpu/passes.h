/// \file
/// Launches memory-bound kernels. Each reads and writes what traffic_of counts; what they compute
/// say pass/elements.h and pass/rows.h.
#pragma once

#include <cuda_runtime_api.h>
#include <span>

#include "strategies/program/ir/kernel.h"

namespace foreshard::replay::gpu {

/// `operands` as arrays_of says. A pass without rows launches nothing.
cudaError_t launch_pass(const Pass& pass, std::span<void* const> operands, cudaStream_t stream);

namespace internal {
/// One family of kinds each; cudaErrorInvalidValue for a kind of another.
/// \pre the dtype is a floating-point one, rows and columns are positive.
cudaError_t launch_elements(const Pass& pass, std::span<void* const> operands, cudaStream_t stream);
cudaError_t launch_rows(const Pass& pass, std::span<void* const> operands, cudaStream_t stream);
cudaError_t launch_columns(const Pass& pass, std::span<void* const> operands, cudaStream_t stream);
}  // namespace internal

}  // namespace foreshard::replay::gpu
