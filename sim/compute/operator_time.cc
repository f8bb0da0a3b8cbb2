#include "sim/compute/operator_time.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <initializer_list>
#include <type_traits>

#include "base/check.h"
#include "base/hash.h"
#include "base/quantity.h"

#include "sim/compute/internal/attention_time.h"
#include "sim/compute/internal/gemm_time.h"
#include "sim/compute/internal/pass_time.h"
#include "sim/compute/measured.h"

namespace foreshard {
namespace {

std::size_t mix(std::size_t seed, std::uint64_t value) {
  return static_cast<std::size_t>(mixed(seed + value));
}
std::size_t hash_of(std::size_t seed, std::initializer_list<std::int64_t> values) {
  for (const std::int64_t value : values) seed = mix(seed, static_cast<std::uint64_t>(value));
  return seed;
}
std::size_t hash_of(const Gemm& g) {
  return hash_of(1, {g.batch, g.m, g.n, g.k, static_cast<std::int64_t>(g.dtype), g.accumulate,
                     g.matrix_units, static_cast<std::int64_t>(g.scales), g.apart});
}
std::size_t hash_of(const Attention& a) {
  return hash_of(
      2, {a.batch, a.query_heads, a.kv_heads, a.query_length, a.key_length, a.head_dim, a.value_dim,
          a.causal, a.window, a.sample, static_cast<std::int64_t>(a.direction),
          static_cast<std::int64_t>(a.dtype), static_cast<std::int64_t>(a.implementation)});
}
std::size_t hash_of(const Pass& p) {
  return hash_of(3, {static_cast<std::int64_t>(p.kind), p.rows, p.columns,
                     static_cast<std::int64_t>(p.dtype), p.state_bytes, p.launches});
}

std::string two_decimals(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  return text.data();
}

}  // namespace

std::string_view name_of(Bound bound) {
  switch (bound) {
    case Bound::kCompute:
      return "compute";
    case Bound::kMemory:
      return "memory";
    case Bound::kFloor:
      return "floor";
  }
  FORESHARD_CHECK(false && "every bound has a name");
  return {};
}

Bound OperatorTime::bound() const {
  if (floor > std::max(compute, memory)) return Bound::kFloor;
  return memory > compute ? Bound::kMemory : Bound::kCompute;
}

OperatorTime time_of(const Kernel& kernel, const DeviceType& device, Duty duty) {
  const OperatorTime model = model_time_of(kernel, device, duty);
  if (!lists_measured(device)) return model;
  return MeasuredKernels(device).corrected(kernel, model, duty);
}

OperatorTime model_time_of(const Kernel& kernel, const DeviceType& device, Duty duty) {
  return std::visit(
      [&](const auto& k) {
        using K = std::decay_t<decltype(k)>;
        if constexpr (std::is_same_v<K, Gemm>) return compute::gemm_time(k, device, duty);
        if constexpr (std::is_same_v<K, Attention>) return compute::attention_time(k, device, duty);
        if constexpr (std::is_same_v<K, Pass>) return compute::pass_time(k, device);
      },
      kernel);
}

std::string explain(const Kernel& kernel, const OperatorTime& time) {
  std::string text = describe(kernel) + ": " + format(time.total()) + ", " +
                     std::string(name_of(time.bound())) + "-bound";
  if (time.basis == Basis::kMeasured) text += ", measured";
  if (time.basis == Basis::kNeighbours)
    text += ", x " + two_decimals(time.correction) + " as its measured neighbours";
  if (time.units == 0) return text;
  text += " (" + std::to_string(time.units);
  if (time.tile.m > 0) {
    text += " tiles of " + std::to_string(time.tile.m) + "x" + std::to_string(time.tile.n);
    if (time.split > 1) text += ", k split in " + std::to_string(time.split) + ",";
  } else {
    text += " units";
  }
  return text + " in " + std::to_string(time.waves) + (time.waves == 1 ? " wave)" : " waves)");
}

std::size_t KernelHash::operator()(const Kernel& kernel) const noexcept {
  return std::visit([](const auto& k) { return hash_of(k); }, kernel);
}

CachedOperatorTime::CachedOperatorTime(const DeviceType& device) : device_(&device) {
  if (lists_measured(device)) measured_ = std::make_unique<const MeasuredKernels>(device);
}
CachedOperatorTime::~CachedOperatorTime() = default;
CachedOperatorTime::CachedOperatorTime(CachedOperatorTime&&) noexcept = default;
CachedOperatorTime& CachedOperatorTime::operator=(CachedOperatorTime&&) noexcept = default;

const OperatorTime& CachedOperatorTime::time_of(const Kernel& kernel) {
  const auto [place, is_new] = times_.try_emplace(kernel);
  if (is_new) {
    place->second = model_time_of(kernel, *device_);
    if (measured_) place->second = measured_->corrected(kernel, place->second, Duty::kSustained);
  }
  return place->second;
}

}  // namespace foreshard
