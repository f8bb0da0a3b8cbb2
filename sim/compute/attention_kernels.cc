#include "sim/compute/attention_kernels.h"

#include <cstdint>

namespace foreshard {
namespace {

// Compute capabilities, times ten.
constexpr std::int64_t kAmpere = 80;
constexpr std::int64_t kHopper = 90;

}  // namespace

bool has_attention(AttentionImplementation implementation, const DeviceType& device) {
  using enum AttentionImplementation;
  if (implementation == kFused || implementation == kUnfused) return true;
  const auto& capability = device.compute_capability;
  const bool stated = capability.evidence != yaml::Evidence::kTransferred;
  if (implementation == kFlash3)
    return stated ? *capability == kHopper : generation_of(device) == "Hopper";
  return !stated || *capability >= kAmpere;
}

AttentionImplementation attention_instead_of(AttentionImplementation implementation) {
  using enum AttentionImplementation;
  return implementation == kCudnn ? kUnfused : kFused;
}

std::string need_of(AttentionImplementation implementation) {
  using enum AttentionImplementation;
  if (implementation == kFused || implementation == kUnfused) return {};
  return implementation == kFlash3 ? "compute capability 9.0" : "compute capability 8.0 or more";
}

}  // namespace foreshard
