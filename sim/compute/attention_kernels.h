/// \file
/// Attention kernels that frameworks have for a device.
#pragma once

#include <string>

#include "strategies/program/ir/kernel.h"
#include "topology/device_type.h"

namespace foreshard {

/// Whether the implementation runs on the device. FlashAttention (version 2 and the Triton one) and
/// cuDNN's fused attention need compute capability 8.0; FlashAttention-3 needs Hopper. A device
/// that states no compute capability runs every implementation but FlashAttention-3, which it runs
/// only if its efficiency file is of Hopper's generation.
/// Source: Dao-AILab/flash-attention, README.md (Ampere, Ada and Hopper; hopper/: H100 and H800);
/// NVIDIA/cudnn-frontend, docs/operations/Attention.md (SM 80 and later).
/// Not modelled: limits on head sizes and types (FlashAttention's heads have at most 256 elements
/// of 16 bits).
bool has_attention(AttentionImplementation implementation, const DeviceType& device);

/// The implementation that frameworks fall back to where the device cannot run `implementation`.
/// Transformer Engine, which chooses kCudnn, falls back to unfused products
/// (transformer_engine/pytorch/attention: UnfusedDotProductAttention). PyTorch's
/// scaled_dot_product_attention falls back to its memory-efficient kernel, the usual one on devices
/// before Ampere (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp).
AttentionImplementation attention_instead_of(AttentionImplementation implementation);

/// What the implementation needs from a device: "compute capability 8.0 or more"; empty: nothing.
std::string need_of(AttentionImplementation implementation);

}  // namespace foreshard
