/// \file
/// How long a kernel takes on an idle device, from its shape and the device's parameters:
///
///     time = max(compute, memory) + floor
///
/// All parts are listed, so that a report can explain the time. For example, a product of 4096^3 in
/// bf16 on 108 multiprocessors: 512 tiles of 256 x 128 in 5 waves, compute-bound.
///
/// Not modelled: other work on the device (the engine shares SMs and memory), data that the
/// previous kernel left in the L2 cache, and a power limit that depends on the mix of kernels.
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

/// Clocks at which a kernel runs.
enum class Duty : std::uint8_t {
  kSustained,  ///< Inside a training step: the clocks that the power limit leaves.
  kBurst,      ///< Alone, as microbenchmarks run it.
};

/// Where a time comes from.
enum class Basis : std::uint8_t {
  kModel,
  kMeasured,  ///< Exactly this kernel was measured on this device.
  /// The model's time, multiplied by how far the model is off for measured kernels nearby.
  kNeighbours,
};

struct OperatorTime {
  Seconds compute{};       ///< Arithmetic on the busiest multiprocessor.
  Seconds memory{};        ///< Traffic through the memory interface.
  Seconds floor{};         ///< Time of a kernel that does nothing.
  std::int64_t units = 0;  ///< Tiles of a product, work units of attention; 0 for a pass.
  std::int64_t waves = 0;  ///< Rounds in which the multiprocessors process the units.
  GemmTile tile{};         ///< Tile shape of a product.
  std::int64_t split = 1;  ///< Number of parts into which a product's k is split.
  Basis basis = Basis::kModel;
  double correction = 1;  ///< Factor on the model's time, for kNeighbours.

  Seconds total() const { return (compute < memory ? memory : compute) + floor; }
  /// The largest of the three parts: what a faster kernel would have to improve.
  Bound bound() const;
};

/// The measured time where there is one (measured.h), otherwise the time of `model_time_of`.
///
/// \pre The same as for model_time_of.
OperatorTime time_of(const Kernel& kernel, const DeviceType& device, Duty duty = Duty::kSustained);

/// The time of `kernel` alone on one device of type `device`, from the model only.
///
/// Products: the fastest of the device's tile shapes and splits of k, as a tuned library would
/// choose (k is not split where scales change along it),
///
///     compute = waves * (overhead + max(tile flops / rate, tile operands / operand rate))
///     waves   = ceil(batch * ceil(m / tile m) * ceil(n / tile n) * split / multiprocessors)
///     memory  = bytes of A, B, D (and of the parts, if split) / (bandwidth * streaming)
///
/// On devices with an `overlap` p, the longer of the two, l, becomes l (1 + (shorter / l)^p)^(1/p);
/// products whose scales change along k may have another p.
/// Source of p: aiconfigurator's products of k = 256, whose arithmetic lasts as long as their
/// traffic. On B200, the longer one alone is 25 % below their measured times.
///
/// Products that are launched apart run in batches of `side_by_side`, one batch after another.
///
/// Attention: one unit is `tile` queries (backward: keys) of one sequence and head. A causal unit
/// sees half of the keys on average, and the device balances such units except for the last.
///
/// Passes (memory-bound kernels): memory = bytes / (bandwidth * efficiency of the pass).
///
/// \pre Every extent of the kernel is >= 1 (0 gives an empty kernel, which takes the floor).
OperatorTime model_time_of(const Kernel& kernel, const DeviceType& device,
                           Duty duty = Duty::kSustained);

/// "gemm 4096x4096x4096 bf16: 560 us, compute-bound (512 tiles of 256x128 in 5 waves)".
std::string explain(const Kernel& kernel, const OperatorTime& time);

/// For hash tables; stable within a process only.
struct KernelHash {
  std::size_t operator()(const Kernel& kernel) const noexcept;
};

class MeasuredKernels;

/// `time_of` with a cache, for callers that ask for the same kernels again and again. Use one
/// object per thread; the device must outlive it.
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
