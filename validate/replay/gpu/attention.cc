#include "validate/replay/gpu/attention.h"

#include <cmath>
#include <string>

#include "validate/replay/gpu/attention_tiles.h"

namespace foreshard::replay::gpu {

Status attention_fault(const Attention& a) {
  const auto unsupported = [&](const std::string& why) {
    return Error{Error::Code::kUnsupported, describe(Kernel(a)) + ": " + why};
  };
  if (a.dtype != DType::kBf16 && a.dtype != DType::kFp16)
    return unsupported("attention runs in bf16 and fp16 on GPUs");
  if (a.head_dim > 128 || a.head_dim % 8 != 0)
    return unsupported("heads are multiples of 8 up to 128 on GPUs");
  if (a.window > 0 || a.sample > 0 || a.value_width() != a.head_dim)
    return unsupported(
        "windows, packed samples, and values that are not as wide as keys, do not run on GPUs");
  if (a.query_heads % a.kv_heads != 0)
    return unsupported("query heads must be a multiple of the heads of keys and values");
  if (a.query_heads > 65535 || a.batch > 65535)
    return unsupported("more than 65535 heads or sequences at once");
  return {};
}

cudaError_t launch_attention(const Attention& a, std::span<void* const> operands,
                             cudaStream_t stream) {
  const AttentionLaunch launch{
      .shape = {.query_length = a.query_length,
                .key_length = a.key_length,
                .query_heads = static_cast<int>(a.query_heads),
                .kv_heads = static_cast<int>(a.kv_heads),
                .dimension = static_cast<int>(a.head_dim),
                .causal = a.causal,
                .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(a.head_dim)))},
      .batch = a.batch,
      .half = a.dtype == DType::kFp16,
      .operands = operands};
  return a.direction == Direction::kForward ? launch_attention_forward(launch, stream)
                                            : launch_attention_backward(launch, stream);
}

}  // namespace foreshard::replay::gpu
