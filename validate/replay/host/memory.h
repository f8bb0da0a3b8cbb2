/// \file
/// Memory of a rank on the host: what is left of the machine, regions from which kernels and
/// communications take their operands, and the heap of the Program's buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/units.h"

namespace foreshard::replay::host {

/// What the processes of this machine, or of this one's control groups, may still take together:
/// the lesser of /proc/meminfo's MemAvailable and what the groups leave (v2 memory.max, v1
/// memory.limit_in_bytes; their reclaimable file cache counts as free).
Bytes available_memory();

/// What this process may still map (RLIMIT_AS); very much without a limit.
Bytes address_space_left();

/// Size of the last-level cache that one core can count on: its size over the cores that share
/// it, as the kernel tells; nothing if it does not.
std::optional<Bytes> cache_share();

/// Pages of memory of this process, given back with it. Large pages where the kernel grants them.
class Pages {
 public:
  Pages() = default;
  /// \return kInfeasible if the system refuses.
  static Result<Pages> reserve(std::size_t bytes);
  ~Pages();
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;

  std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A stretch of memory handed out piece after piece, from the beginning again at its end: each
/// piece has long left the cache when it comes round again.
class Region {
 public:
  enum class Content : std::uint8_t {
    kZero,
    /// Numbers of both signs, ordinary ones however read: 0.25 to 0.5 as fp32 and bf16.
    kOrdinary,
  };
  /// Touches all of it, so that no page faults come later.
  static Result<Region> make(std::size_t bytes, Content content);

  /// The pieces that follow, `bytes` together, each rounded up to a cache line, lie apart from one
  /// another.
  /// \pre bytes <= size()
  void begin(std::size_t bytes) {
    if (next_ + bytes > size()) next_ = 0;
  }
  /// \pre bytes <= size()
  std::span<std::byte> take(std::size_t bytes);
  template <class T>
  T* take_array(std::int64_t elements) {
    return reinterpret_cast<T*>(take(static_cast<std::size_t>(elements) * sizeof(T)).data());
  }
  /// From the beginning again.
  void rewind() { next_ = 0; }
  std::size_t size() const { return pages_.bytes().size(); }

 private:
  Pages pages_;
  std::size_t next_ = 0;
};

/// First-fit offsets in a space that grows at its end. A block is a multiple of kGrain.
class Heap {
 public:
  static constexpr std::size_t kGrain = 256;

  std::size_t allocate(std::size_t bytes);
  /// \pre allocated with these bytes, not yet given back.
  void free(std::size_t offset, std::size_t bytes);

  std::size_t live() const { return live_; }
  std::size_t peak() const { return peak_; }      ///< Most bytes live at once.
  std::size_t extent() const { return extent_; }  ///< Highest end ever: with its gaps.

 private:
  static std::size_t rounded(std::size_t bytes) { return (bytes + kGrain - 1) / kGrain * kGrain; }

  std::map<std::size_t, std::size_t> gaps_;  // Offset -> bytes; never adjacent.
  std::size_t live_ = 0;
  std::size_t peak_ = 0;
  std::size_t extent_ = 0;
};

}  // namespace foreshard::replay::host
