/// \file
/// Kernels on one core. Matrix products go to BLAS; attention is tiled as on a GPU ("flash"), its
/// products by BLAS; passes are loops that read and write what their line of traffic_of() says.
///
///     Footprint memory = footprint_of(kernel);         // once, for the largest
///     run(kernel, read, written, work);                // operands from the regions
///
/// **Arithmetic is fp32** whatever the dtype. A pass reads and writes its dtype, a Gemm or
/// Attention works on fp32 operands: for 2-byte dtypes these move twice the bytes of the shape.
/// Not modelled: arithmetic of other precisions, transposed operands (A and B lie row by row).
///
/// Operands that are only read come from one region, which nothing writes to, so that numbers stay
/// ordinary however often a step is repeated; results and in-place operands from the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "strategies/program/ir/kernel.h"
#include "validate/replay/host/memory.h"

namespace foreshard::replay::host {

/// Bytes that a kernel takes from each region, and of fp32 scratch that stays in the cache.
struct Footprint {
  std::size_t read = 0;
  std::size_t written = 0;
  std::size_t work = 0;
};
Footprint footprint_of(const Kernel& kernel);

/// Why this machine's BLAS cannot take it ("m = 3000000000: BLAS counts to 2147483647").
std::optional<std::string> refusal_of(const Kernel& kernel);

/// \pre the regions have at least footprint_of(kernel), and refusal_of finds nothing.
void run(const Kernel& kernel, Region& read, Region& written, std::span<std::byte> work);

/// d[b] = a[b] b[b], or d[b] += ...: row by row, batch after batch.
void multiply(const Gemm& gemm, const float* a, const float* b, float* d);

/// Operands as [batch, heads, length, head_dim]. `statistics`: log of the sum of exponentials of
/// each query, [batch, query_heads, query_length], written by the forward pass for the backward.
struct AttentionOperands {
  const float* query = nullptr;
  const float* key = nullptr;
  const float* value = nullptr;
  // Forward: written.
  float* output = nullptr;
  float* statistics = nullptr;
  // Backward: read ...
  const float* forward_output = nullptr;
  const float* forward_statistics = nullptr;
  const float* output_gradient = nullptr;
  // ... and written.
  float* query_gradient = nullptr;
  float* key_gradient = nullptr;
  float* value_gradient = nullptr;
};
/// Query q sees key k if q - query_length >= k - key_length, or if not causal. A query that sees
/// no key gives zero. `work` has footprint_of(attention).work bytes.
/// Source: Dao, "FlashAttention-2: faster attention with better parallelism and work
/// partitioning", 2023 (blocks, order of loops, recomputed scores, D = rowsum(dO * O)).
void attend(const Attention& attention, const AttentionOperands& operands,
            std::span<std::byte> work);

}  // namespace foreshard::replay::host
