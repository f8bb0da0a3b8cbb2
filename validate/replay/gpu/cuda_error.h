/// \file
/// CUDA's status codes as our errors.
#pragma once

#include <cuda_runtime_api.h>
#include <string>

#include "base/result.h"

namespace foreshard::replay::gpu {

inline std::string said(cudaError_t status) {
  return std::string(cudaGetErrorName(status)) + " (" + cudaGetErrorString(status) + ")";
}

/// Nothing for cudaSuccess; else kIo, "`what`: cudaError... (...)".
inline Status fault_of(cudaError_t status, const std::string& what) {
  if (status == cudaSuccess) return {};
  return Error{Error::Code::kIo, what + ": " + said(status)};
}

}  // namespace foreshard::replay::gpu
