/// \file
/// Kernels on one core. Matrix products are done by BLAS; attention is tiled as on a GPU ("flash"),
/// with products by BLAS; passes are loops that read and write the bytes that traffic_of() counts.
///
///     Footprint memory = footprint_of(kernel);         // once, for the largest
///     run(kernel, read, written, work);                // operands from the regions
///
/// **Arithmetic is fp32** for every dtype. A pass reads and writes its dtype; a Gemm or Attention
/// works on fp32 operands, and so moves twice the bytes of its shape for 2-byte dtypes.
/// Not modelled: arithmetic in other precisions, transposed operands (A and B are stored row by
/// row).
///
/// Operands that are only read come from one region, which is never written, so that its numbers
/// stay ordinary however often a step is repeated. Results and in-place operands come from the
/// other region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "strategies/program/ir/kernel.h"
#include "validate/replay/host/memory.h"

namespace foreshard::replay::host {

/// Bytes that a kernel takes from each region, and bytes of fp32 scratch that stay in the cache
/// (`work`).
struct Footprint {
  std::size_t read = 0;
  std::size_t written = 0;
  std::size_t work = 0;
};
Footprint footprint_of(const Kernel& kernel);

/// Why this machine's BLAS cannot run the kernel ("m = 3000000000: BLAS counts to 2147483647");
/// nothing if it can.
std::optional<std::string> refusal_of(const Kernel& kernel);

/// \pre the regions have at least footprint_of(kernel), and refusal_of finds nothing.
void run(const Kernel& kernel, Region& read, Region& written, std::span<std::byte> work);

/// d[b] = a[b] b[b], or d[b] += a[b] b[b] with `accumulate`. Matrices are stored row by row, batch
/// after batch.
void multiply(const Gemm& gemm, const float* a, const float* b, float* d);

/// Sizes of attention's tiles. Two score tiles in fp32 (256 KiB) stay in a core's second-level
/// cache, together with the rows of Q, K and V from which they are computed.
inline constexpr std::int64_t kQueryTile = 128;
inline constexpr std::int64_t kKeyTile = 256;

/// Operands with the layout [batch, heads, length, head_dim]. `statistics` has the logarithm of the
/// sum of exponentials of each query, [batch, query_heads, query_length]; the forward pass writes
/// it for the backward pass.
struct AttentionOperands {
  const float* query = nullptr;
  const float* key = nullptr;
  const float* value = nullptr;
  // Forward pass: outputs.
  float* output = nullptr;
  float* statistics = nullptr;
  // Backward pass: inputs.
  const float* forward_output = nullptr;
  const float* forward_statistics = nullptr;
  const float* output_gradient = nullptr;
  // Backward pass: outputs.
  float* query_gradient = nullptr;
  float* key_gradient = nullptr;
  float* value_gradient = nullptr;
};
/// Computes attention. Query q sees key k if q - query_length >= k - key_length, or if it is not
/// causal. The output of a query that sees no key is zero.
/// \param work  scratch of footprint_of(attention).work bytes.
/// Source: Dao, "FlashAttention-2: faster attention with better parallelism and work
/// partitioning", 2023 (blocks, order of loops, recomputed scores, D = rowsum(dO * O)).
void attend(const Attention& attention, const AttentionOperands& operands,
            std::span<std::byte> work);

}  // namespace foreshard::replay::host
