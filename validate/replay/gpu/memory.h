/// \file
/// Device memory of a replay: an arena for the Program's buffers, and scratch memory for the data
/// that kernels and communications read and write.
///
/// **The Program's buffers** are placed in one arena, in the order of issue, as a caching allocator
/// on one stream does it: a buffer takes the smallest gap that holds it (sizes are rounded up to
/// 512 bytes), and its space is free again when its Free is issued. The arena reaches to the
/// highest address that this needs. It is really allocated, and its size is the reported peak,
/// which thus includes fragmentation. A stream-ordered pool (cudaMallocAsync) would report its
/// reserve and put driver calls between the tasks that are timed.
///
/// **Scratch memory** consists of two rings: one that is only read, filled once with plausible
/// numbers (random data cost tensor cores more power than zeros), and one that is written. Each
/// task takes the next piece, so that its operands have left the L2 cache.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "validate/replay/plan.h"

namespace foreshard::replay::gpu {

/// Places buffers in an unbounded address range.
class Arena {
 public:
  static constexpr std::size_t kGranule = 512;

  /// \return the address, from 0.
  std::size_t allocate(std::size_t bytes);
  /// \pre `address` is allocated.
  void free(std::size_t address);
  /// Highest end of an allocation so far.
  std::size_t peak() const { return peak_; }

 private:
  std::map<std::size_t, std::size_t> used_;  // address -> size
  std::size_t peak_ = 0;
};

/// The size that the arena must have, and why.
struct ArenaPlan {
  std::size_t bytes = 0;
  /// One growth of the arena, caused by one buffer.
  struct Growth {
    std::size_t to = 0;     ///< New size, bytes.
    std::size_t asked = 0;  ///< Size of the buffer, bytes.
    std::string what{};     ///< "activations before layer3.qkv (layer 3, micro-batch 0)".
  };
  std::vector<Growth> growths{};
};
ArenaPlan plan_arena(const RankPlan& plan);

/// Device memory, freed by the destructor.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory();

  /// \return kInfeasible: "out of memory for `what`: 3 GB asked for, 1 GB of 141 GB free".
  Status allocate(std::size_t bytes, const std::string& what);
  void* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Hands out consecutive pieces of one allocation, from the beginning again at its end.
class Ring {
 public:
  static constexpr std::size_t kAlignment = 256;

  void over(const DeviceMemory& memory);
  /// \pre bytes <= the memory's size.
  void* take(std::size_t bytes);

 private:
  unsigned char* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t next_ = 0;
};

}  // namespace foreshard::replay::gpu
