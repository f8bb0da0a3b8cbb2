/// \file
/// Launches memory-bound kernels. Each reads and writes the bytes that traffic_of counts;
/// pass/elements.h and pass/rows.h define what they compute.
#pragma once

#include <cuda_runtime_api.h>
#include <span>

#include "strategies/program/ir/kernel.h"

namespace foreshard::replay::gpu {

/// Launches a pass; a pass without rows launches nothing.
/// \param operands  arrays in the order of arrays_of.
cudaError_t launch_pass(const Pass& pass, std::span<void* const> operands, cudaStream_t stream);

namespace internal {
/// Each function launches one family of kinds and returns cudaErrorInvalidValue for other kinds.
/// \pre the dtype is a floating-point one, rows and columns are positive.
cudaError_t launch_elements(const Pass& pass, std::span<void* const> operands, cudaStream_t stream);
cudaError_t launch_rows(const Pass& pass, std::span<void* const> operands, cudaStream_t stream);
cudaError_t launch_columns(const Pass& pass, std::span<void* const> operands, cudaStream_t stream);
}  // namespace internal

}  // namespace foreshard::replay::gpu
