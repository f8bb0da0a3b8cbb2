/// \file
/// Fused attention on tensor cores: softmax(Q K^T / sqrt(d)) V a tile at a time, without the matrix
/// of scores in memory. Arrays lie as [batch, position, head, dimension]; heads of keys and values
/// are shared by query_heads / kv_heads of the queries'. With `causal`, query i sees keys up to
/// i + key_length - query_length.
///
/// Source: Dao, "FlashAttention-2" (2023), algorithms 1 and 2 (five products backward, dQ gathered
/// by atomic additions).
/// Not modelled: the faster instructions of Hopper and Blackwell (wgmma, bulk copies), dropout,
/// variable lengths.
#pragma once

#include <cuda_runtime_api.h>
#include <span>

#include "base/result.h"

#include "strategies/program/ir/kernel.h"

namespace foreshard::replay::gpu {

/// \return kUnsupported where there is no kernel: dtypes other than bf16 and fp16, heads larger
///     than 128 or not a multiple of 8, query heads that are not a multiple of those of keys.
Status attention_fault(const Attention& attention);

/// `operands` as operands_of says.
/// \pre attention_fault finds nothing.
cudaError_t launch_attention(const Attention& attention, std::span<void* const> operands,
                             cudaStream_t stream);

}  // namespace foreshard::replay::gpu
