/// \file
/// The two directions of attention, used by launch_attention (attention.h).
#pragma once

#include <cuda_runtime_api.h>
#include <span>

#include "validate/replay/gpu/attention_tiles.h"

namespace foreshard::replay::gpu {

struct AttentionLaunch {
  AttentionShape shape{};
  std::int64_t batch = 1;
  bool half = false;  ///< True: fp16; false: bf16.
  std::span<void* const> operands{};
};
cudaError_t launch_attention_forward(const AttentionLaunch& attention, cudaStream_t stream);
cudaError_t launch_attention_backward(const AttentionLaunch& attention, cudaStream_t stream);

}  // namespace foreshard::replay::gpu
