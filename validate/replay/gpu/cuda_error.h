/// \file
/// Converts CUDA's status codes to errors of foreshard.
#pragma once

#include <cuda_runtime_api.h>
#include <string>

#include "base/result.h"

namespace foreshard::replay::gpu {

inline std::string said(cudaError_t status) {
  return std::string(cudaGetErrorName(status)) + " (" + cudaGetErrorString(status) + ")";
}

/// Success for cudaSuccess; else kIo, "`what`: cudaError... (...)".
inline Status fault_of(cudaError_t status, const std::string& what) {
  if (status == cudaSuccess) return {};
  return Error{Error::Code::kIo, what + ": " + said(status)};
}

}  // namespace foreshard::replay::gpu
