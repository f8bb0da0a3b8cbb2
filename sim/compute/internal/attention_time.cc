// The part of operator_time.cc that times fused attention. Times are seconds on an idle device.
#include "sim/compute/internal/attention_time.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"

namespace foreshard::compute {
namespace {

double rate_of(const AttentionRate& rate, Direction direction) {
  return direction == Direction::kForward ? rate.forward : rate.backward;
}

// Linear between two listed head sizes; beyond the ends: the last one.
double rate_at(const AttentionEfficiency& e, std::int64_t head_dim, Direction direction) {
  FORESHARD_CHECK(!e.rates.empty());
  const auto above = std::ranges::lower_bound(e.rates, head_dim, {}, &AttentionRate::head_dim);
  if (above == e.rates.begin()) return rate_of(*above, direction);
  const auto below = std::prev(above);
  if (above == e.rates.end()) return rate_of(*below, direction);
  const double way = count(head_dim - below->head_dim) / count(above->head_dim - below->head_dim);
  return std::lerp(rate_of(*below, direction), rate_of(*above, direction), way);
}

// FlashAttention has kernels for head sizes of 32, 64, 96 and so on, and pads others to the next
// (Dao-AILab/flash-attention 0251105a2fb1, csrc/flash_attn/src/static_switch.h). kPadded is the
// share of the rate that is left because padded loads check bounds. Source: estimate-train-time
// 1ac4d5e44116, forward without a mask, padded heads compared with unpadded ones: A100 0.84, GH200
// 0.89.
constexpr std::int64_t kHeadStep = 32;
constexpr double kPadded = 0.87;

bool pads_heads(const Attention& a, const DeviceType& device) {
  using enum AttentionImplementation;
  constexpr std::int64_t kFirstWithFlash = 80;
  return a.implementation == kFlash2 || a.implementation == kFlash3 ||
         (a.implementation == kFused && *device.compute_capability >= kFirstWithFlash);
}

// Share of the peak that the useful arithmetic reaches, padding not counted.
double share_of(const Attention& a, const AttentionEfficiency& e, const DeviceType& device) {
  const std::int64_t step = pads_heads(a, device) ? kHeadStep : 1;
  const auto padded = [&](std::int64_t width) { return parts(width, step) * step; };
  const std::int64_t keys = padded(a.head_dim);
  const std::int64_t values = padded(a.value_width());
  const double rate = rate_at(e, (keys + values) / 2, a.direction);
  if (keys == a.head_dim && values == a.value_width()) return rate;
  return rate * kPadded * count(a.head_dim + a.value_width()) / count(keys + values);
}

// Memory traffic of the kernels around the backward kernel: one sums up the products of results and
// their gradients (both are read, in 16 bits); the gradients of queries are cleared, added up in
// fp32 and converted (flash-attention 0251105a2fb1, csrc/flash_attn/flash_api.cpp, mha_bwd).
Bytes bytes_around_backward(const Attention& a) {
  const double rows = count(a.batch * a.query_heads * a.query_length);
  const Bytes element = size_of(a.dtype);
  const Bytes sum = size_of(DType::kFp32);
  return rows * (2 * count(a.value_width()) * element + count(a.head_dim) * (2 * sum + element));
}

}  // namespace

const AttentionEfficiency& efficiency_of(const Attention& attention,
                                         const DeviceEfficiency& device) {
  const std::string name(name_of(attention.implementation));
  const auto narrow = device.attention_of.find(name + "-fp8");
  if (attention.dtype == DType::kFp8 && narrow != device.attention_of.end()) return narrow->second;
  const auto own = device.attention_of.find(name);
  return own == device.attention_of.end() ? device.attention : own->second;
}

OperatorTime attention_time(const Attention& a, const DeviceType& device, Duty duty) {
  const AttentionEfficiency& e = efficiency_of(a, *device.efficiency);
  if (a.batch < 1 || a.query_heads < 1 || a.query_length < 1 || a.key_length < 1 || a.head_dim < 1)
    return {.floor = e.floor};

  const bool forward = a.direction == Direction::kForward;
  const double clocks = duty == Duty::kSustained ? e.sustained : 1.0;
  // Without rates in fp8, fp8 runs as fast as bf16.
  const bool has_fp8 =
      device.efficiency->attention_of.contains(std::string(name_of(a.implementation)) + "-fp8");
  const DType dtype = a.dtype == DType::kFp8 && !has_fp8 ? DType::kBf16 : a.dtype;
  const FlopsPerSecond rate = peak_of(device, std::string(name_of(dtype))) *
                              (share_of(a, e, device) * clocks) / count(*device.multiprocessors);

  // A unit owns `tile` rows of the score matrix (backward: columns) and walks along the other
  // dimension. A causal unit sees half of that dimension on average, plus the masked half of its
  // own diagonal tile. With a window w it sees at most the window and its own tile; of n positions
  // that is (w + tile) (1 - w / 2n) on average. Packed samples have rows of their own.
  // Not modelled: the longest samples decide when the kernel ends.
  const double samples = a.sample > 0 ? std::max(1.0, count(a.key_length) / count(a.sample)) : 1.0;
  const auto of_sample = [&](std::int64_t tokens) {
    return std::max<std::int64_t>(1, std::llround(count(tokens) / samples));
  };
  const std::int64_t owned = of_sample(forward ? a.query_length : a.key_length);
  const std::int64_t walked = of_sample(forward ? a.key_length : a.query_length);
  const std::int64_t units =
      std::llround(count(a.batch * a.query_heads * parts(owned, e.tile)) * samples);
  const auto unit_time = [&](double steps) {
    return 2.0 * count(e.tile) * steps * count(widths_of_products(a)) * 1_FLOP / rate +
           e.unit_overhead;
  };
  const double all = count(walked);
  const double seen = a.window > 0 ? std::min(all, count(a.window + e.tile)) : all;
  const double before = seen - count(e.tile);
  const double half = before > 0 ? seen / all * (2 * all - before) / 2 : all;
  const Seconds longest = unit_time(seen);
  const Seconds average = a.causal ? unit_time(half) : longest;

  // Equal units run in whole waves. Unequal ones run longest first: all multiprocessors are busy
  // until about one average unit before the end, and the kernel lasts at least as long as its
  // longest unit.
  const double rounds = count(units) / count(*device.multiprocessors);
  const std::int64_t waves = parts(units, *device.multiprocessors);
  const Seconds balanced = a.causal ? (rounds > 1 ? (rounds + 1) * average : longest) : longest;
  const BytesPerSecond bandwidth = *device.memory_bandwidth * *device.efficiency->passes.streaming;
  const Seconds around = forward ? Seconds() : bytes_around_backward(a) / bandwidth;
  return {.compute = around + (a.causal ? std::max(longest, balanced) : count(waves) * longest),
          .memory = bytes_of(a) / bandwidth,
          .floor = e.floor,
          .units = units,
          .waves = waves};
}

}  // namespace foreshard::compute
