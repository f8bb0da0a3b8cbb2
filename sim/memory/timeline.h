/// \file
/// Live bytes of one device over time:  live(t) = static + sum of deltas at or before t.
///
///     live_bytes(role.memory, {{1_ms, MemoryKind::kActivations, 64_MiB}, ...}).peak
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/units.h"

#include "strategies/program/ir/program.h"

namespace foreshard::memory {

using program::MemoryKind;

inline constexpr std::size_t kMemoryKinds = 5;
/// Bytes by MemoryKind, indexed by enumerator.
using BytesByKind = std::array<Bytes, kMemoryKinds>;

struct Event {
  Seconds time;  ///< Since the start of the step.
  MemoryKind kind = MemoryKind::kActivations;
  Bytes delta;  ///< Positive: allocated; negative: freed.
};

/// What is live from `time` until the next sample.
struct Sample {
  Seconds time;
  BytesByKind live{};
};

struct LiveBytes {
  Bytes peak;
  Seconds peak_time;      ///< The earliest instant at which the peak is reached.
  BytesByKind at_peak{};  ///< Sums to `peak`.
  std::vector<Sample> curve;
};

/// Live bytes over the step.
///
/// All events at one instant count together, frees before allocations: a device's allocator
/// recycles memory in stream order, so a task that starts when another ends may take the memory
/// that the other one frees. The peak is the largest value between instants, so a buffer that lives
/// for no time is in no peak. The order of `events` does not matter beyond rounding, and byte
/// counts below 2^53 do not round.
///
/// \param curve_samples  the maximum number of samples in the curve (0: no curve, at least 2
///     otherwise). If there are more instants, time is cut into that many equal parts, and each
///     part keeps the sample with the most live bytes, so the peak is always in the curve.
///
/// Not modelled: fragmentation and rounding of the allocator.
LiveBytes live_bytes(std::span<const program::StaticMemory> resident, std::vector<Event> events,
                     std::size_t curve_samples = 0);

}  // namespace foreshard::memory
