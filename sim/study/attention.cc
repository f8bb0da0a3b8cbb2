// Chooses the attention implementation of a study (attention.h), for study.cc.
#include "sim/study/attention.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <string_view>

#include "strategies/program/ir/kernel.h"
#include "topology/device_type.h"

namespace foreshard::study {
namespace {

// Compute capabilities, times ten.
constexpr std::int64_t kAmpere = 80;
constexpr std::int64_t kHopper = 90;
constexpr std::int64_t kBlackwell = 100;

// Whether the implementation runs on the device. FlashAttention (version 2 and the Triton one) and
// cuDNN's fused attention need compute capability 8.0; FlashAttention-3 needs Hopper. A device
// that states no compute capability runs every implementation but FlashAttention-3, which it runs
// only if its efficiency file is of Hopper's generation.
// Source: Dao-AILab/flash-attention, README.md (Ampere, Ada and Hopper; hopper/: H100 and H800);
// NVIDIA/cudnn-frontend, docs/operations/Attention.md (SM 80 and later).
// Not modelled: limits on head sizes and types (FlashAttention's heads have at most 256 elements
// of 16 bits).
bool has_attention(AttentionImplementation implementation, const DeviceType& device) {
  using enum AttentionImplementation;
  if (implementation == kFused || implementation == kUnfused) return true;
  const auto& capability = device.compute_capability;
  const bool stated = capability.evidence != yaml::Evidence::kTransferred;
  if (implementation == kFlash3)
    return stated ? *capability == kHopper : generation_of(device) == "Hopper";
  return !stated || *capability >= kAmpere;
}

// The implementation that frameworks fall back to where the device cannot run `implementation`.
// Transformer Engine, which chooses kCudnn, falls back to unfused products
// (transformer_engine/pytorch/attention: UnfusedDotProductAttention). PyTorch's
// scaled_dot_product_attention falls back to its memory-efficient kernel, the usual one on devices
// before Ampere (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp).
AttentionImplementation attention_instead_of(AttentionImplementation implementation) {
  using enum AttentionImplementation;
  return implementation == kCudnn ? kUnfused : kFused;
}

bool is_blackwell(const NodeGroup& group) {
  const auto& capability = group.node->device->compute_capability;
  return capability.evidence != yaml::Evidence::kTransferred && *capability >= kBlackwell;
}

// What the implementation needs from a device: "compute capability 8.0 or more"; empty: nothing.
std::string need_of(AttentionImplementation implementation) {
  using enum AttentionImplementation;
  if (implementation == kFused || implementation == kUnfused) return {};
  return implementation == kFlash3 ? "compute capability 9.0" : "compute capability 8.0 or more";
}

}  // namespace

Status take_attention(Strategy& strategy, const std::vector<NodeGroup>& groups,
                      const yaml::Loader& loader, bool by_default,
                      std::vector<std::string>& remarks) {
  constexpr std::string_view kPlace = "strategy.framework.attention";
  Framework& framework = strategy.framework.value;
  if (by_default && framework.attention_on_blackwell && std::ranges::all_of(groups, is_blackwell))
    framework.attention = *framework.attention_on_blackwell;
  const AttentionImplementation wanted = framework.attention;
  const auto lacks = [&](const NodeGroup& group) {
    return !has_attention(wanted, *group.node->device);
  };
  const auto first = std::ranges::find_if(groups, lacks);
  if (first == groups.end()) return {};
  const std::string lack = fmt::format("device '{}' has no {} attention, which needs {}",
                                       first->node->device->name, name_of(wanted), need_of(wanted));
  const AttentionImplementation other = attention_instead_of(wanted);
  if (!by_default)
    return loader.error_at(
        kPlace, lack,
        fmt::format("set attention: {} (what runs there instead), or take another device",
                    name_of(other)));
  if (!std::ranges::all_of(groups, lacks)) {
    remarks.push_back(lack + "; its times are those of a device that had it, as the others do");
    return {};
  }
  framework.attention = other;
  remarks.push_back(fmt::format("{}: '{}' runs {} there", lack, framework.name,
                                other == AttentionImplementation::kUnfused
                                    ? "products with a softmax between them (unfused)"
                                    : "the device's usual fused kernel"));
  return {};
}

}  // namespace foreshard::study
