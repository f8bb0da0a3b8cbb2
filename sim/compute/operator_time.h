/// \file
/// How long a kernel takes on an idle device, from its shape and the device's parameters:
///
///     time = max(compute, memory) + floor
///
/// with every part listed, so that a report can explain it. For example, a product of 4096^3 in
/// bf16 on 108 multiprocessors: 512 tiles of 256 x 128 in 5 waves, compute-bound.
///
/// Not modelled: other work on the device (the engine shares SMs and memory), data left
/// in the L2 cache by the kernel before, and a power limit that depends on the mix of kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/units.h"

#include "strategies/program/ir/kernel.h"
#include "topology/device_type.h"

namespace foreshard {

enum class Bound : std::uint8_t { kCompute, kMemory, kFloor };
std::string_view name_of(Bound bound);

/// The clocks that a kernel meets.
enum class Duty : std::uint8_t {
  kSustained,  ///< Inside a training step: whatever the power limit leaves.
  kBurst,      ///< Alone, as microbenchmarks run it.
};

/// Where a time comes from.
enum class Basis : std::uint8_t {
  kModel,
  kMeasured,    ///< This very kernel was measured on this device.
  kNeighbours,  ///< The model's, scaled by what it gets wrong for measured kernels nearby.
};

struct OperatorTime {
  Seconds compute{};       ///< Of the arithmetic on the busiest multiprocessor.
  Seconds memory{};        ///< Of the bytes through the memory interface.
  Seconds floor{};         ///< Of a kernel that does nothing.
  std::int64_t units = 0;  ///< Tiles of a product, work units of attention; 0 of a pass.
  std::int64_t waves = 0;  ///< Rounds in which the multiprocessors take them.
  GemmTile tile{};         ///< Of a product.
  std::int64_t split = 1;  ///< Parts of k, of a product.
  Basis basis = Basis::kModel;
  double correction = 1;  ///< For kNeighbours: what the model's time was multiplied by.

  Seconds total() const { return (compute < memory ? memory : compute) + floor; }
  /// What a faster kernel would have to improve: the largest of the three.
  Bound bound() const;
};

/// The measured time where there is one (measured.h), otherwise that of `model_time_of`.
///
/// \pre As of model_time_of.
OperatorTime time_of(const Kernel& kernel, const DeviceType& device, Duty duty = Duty::kSustained);

/// The time of `kernel` alone on one device of type `device`, by the model alone.
///
/// Products: the best of the device's tile shapes and splits of k, as a tuned library would choose
/// (k is whole where scales change along it),
///
///     compute = waves * (overhead + max(tile flops / rate, tile operands / operand rate))
///     waves   = ceil(batch * ceil(m / tile m) * ceil(n / tile n) * split / multiprocessors)
///     memory  = bytes of A, B, D (and of the parts, if split) / (bandwidth * streaming)
///
/// where the longer of both, l, takes l (1 + (shorter / l)^p)^(1/p) on devices with an `overlap` p;
/// products whose scales change along k may have another p.
/// Source of p: aiconfigurator's products of k = 256, whose arithmetic lasts as long as their
/// traffic: the longer one alone is 25 % short of what they take on B200.
///
/// Of products launched apart as many as `side_by_side` are one batch, and batches follow.
///
/// Attention: units of `tile` queries (backward: keys) for each sequence and head; causal units
/// have half of the keys on average, and the device balances them except for the last. Passes:
/// memory = bytes / (bandwidth * efficiency of the pass).
///
/// \pre every extent of the kernel is >= 1 (0 gives an empty kernel: the floor).
OperatorTime model_time_of(const Kernel& kernel, const DeviceType& device,
                           Duty duty = Duty::kSustained);

/// "gemm 4096x4096x4096 bf16: 560 us, compute-bound (512 tiles of 256x128 in 5 waves)".
std::string explain(const Kernel& kernel, const OperatorTime& time);

/// For hash tables; stable within a process only.
struct KernelHash {
  std::size_t operator()(const Kernel& kernel) const noexcept;
};

class MeasuredKernels;

/// time_of with a memory, for callers that ask the same kernels again and again. One object for
/// each thread; the device must outlive it.
class CachedOperatorTime {
 public:
  explicit CachedOperatorTime(const DeviceType& device);
  ~CachedOperatorTime();
  CachedOperatorTime(CachedOperatorTime&&) noexcept;
  CachedOperatorTime& operator=(CachedOperatorTime&&) noexcept;

  const OperatorTime& time_of(const Kernel& kernel);
  Seconds operator()(const Kernel& kernel) { return time_of(kernel).total(); }
  std::size_t size() const { return times_.size(); }

 private:
  const DeviceType* device_;
  std::unique_ptr<const MeasuredKernels> measured_;             // null if there are none
  std::unordered_map<Kernel, OperatorTime, KernelHash> times_;  // looked up only, never walked
};

}  // namespace foreshard
