/// \file
/// Which kernels of attention frameworks have for a device.
#pragma once

#include <string>

#include "strategies/program/ir/kernel.h"
#include "topology/device_type.h"

namespace foreshard {

/// Whether the implementation runs on the device. FlashAttention, version 2 and in Triton, and
/// cuDNN's fused attention need compute capability 8.0, FlashAttention-3 needs Hopper. A device
/// that states no compute capability has all but FlashAttention-3; that needs an efficiency file of
/// Hopper's generation.
/// Source: Dao-AILab/flash-attention, README.md (Ampere, Ada and Hopper; hopper/: H100 and H800);
/// NVIDIA/cudnn-frontend, docs/operations/Attention.md (SM 80 and later).
/// Not modelled: bounds of head sizes and types (the heads of FlashAttention have at most 256
/// elements of 16 bits).
bool has_attention(AttentionImplementation implementation, const DeviceType& device);

/// What frameworks run where a device has no kernel of theirs: Transformer Engine, whose choice
/// kCudnn is, takes unfused products (transformer_engine/pytorch/attention: UnfusedDotProduct-
/// Attention); PyTorch's scaled_dot_product_attention takes its memory-efficient kernel, which is
/// the usual one of devices before Ampere (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp).
AttentionImplementation attention_instead_of(AttentionImplementation implementation);

/// "compute capability 8.0 or more": what the implementation needs of a device; empty: nothing.
std::string need_of(AttentionImplementation implementation);

}  // namespace foreshard
