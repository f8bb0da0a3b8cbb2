/// \file
/// Fused attention on tensor cores: softmax(Q K^T / sqrt(d)) V, computed tile by tile without
/// storing the matrix of scores. Arrays have the layout [batch, position, head, dimension]. Each
/// key and value head is shared by query_heads / kv_heads query heads. With `causal`, query i sees
/// keys up to i + key_length - query_length.
///
/// Source: Dao, "FlashAttention-2" (2023), algorithms 1 and 2 (five products in the backward pass,
/// dQ summed by atomic additions).
/// Not modelled: the faster instructions of Hopper and Blackwell (wgmma, bulk copies), dropout,
/// variable lengths.
#pragma once

#include <cuda_runtime_api.h>
#include <span>

#include "base/result.h"

#include "strategies/program/ir/kernel.h"

namespace foreshard::replay::gpu {

/// \return kUnsupported if there is no kernel: for dtypes other than bf16 and fp16, for a head
///     dimension above 128 or no multiple of 8, or if the number of query heads is no multiple of
///     the number of key heads.
Status attention_fault(const Attention& attention);

/// Launches the kernels of `attention`.
/// \param operands  arrays in the order of operands_of.
/// \pre attention_fault finds nothing.
cudaError_t launch_attention(const Attention& attention, std::span<void* const> operands,
                             cudaStream_t stream);

}  // namespace foreshard::replay::gpu
