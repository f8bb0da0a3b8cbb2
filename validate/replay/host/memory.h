/// \file
/// Memory of a rank on the host: the memory that is available, the regions from which kernels and
/// communications take their operands, and the heap for the Program's buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "validate/replay/plan.h"

namespace foreshard::replay::host {

/// Memory that is still available to all processes on this machine and in this process's control
/// groups: the lesser of /proc/meminfo's MemAvailable and what the groups' limits leave (v2
/// memory.max, v1 memory.limit_in_bytes; their reclaimable file cache counts as free).
Bytes available_memory();

/// Address space that this process may still map (RLIMIT_AS); a very large number without a limit.
Bytes address_space_left();

/// One core's share of the last-level cache: the cache's size divided by the number of cores that
/// share it, according to the kernel; nothing if it does not tell.
std::optional<Bytes> cache_share();

/// Pages of memory, freed by the destructor. Large pages are used if the kernel grants them.
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

/// Memory that is handed out in consecutive pieces, from the beginning again at its end: a piece
/// has left the cache long before it is handed out again.
class Region {
 public:
  enum class Content : std::uint8_t {
    kZero,
    /// Numbers of both signs with ordinary magnitudes in any dtype: 0.25 to 0.5 as fp32 and bf16.
    kOrdinary,
  };
  /// Allocates and touches all pages, so that there are no page faults later.
  static Result<Region> make(std::size_t bytes, Content content);

  /// Makes sure that the next pieces do not overlap.
  /// \param bytes  sum of the next pieces' sizes, each rounded up to a cache line.
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
  /// Starts again from the beginning.
  void rewind() { next_ = 0; }
  std::size_t size() const { return pages_.bytes().size(); }

 private:
  Pages pages_;
  std::size_t next_ = 0;
};

/// Assigns offsets, first-fit, in a space that grows at its end. Block sizes are multiples of
/// kGrain.
class Heap {
 public:
  static constexpr std::size_t kGrain = 256;

  std::size_t allocate(std::size_t bytes);
  /// \pre the block was allocated with this size and is not yet free.
  void free(std::size_t offset, std::size_t bytes);

  std::size_t live() const { return live_; }
  std::size_t peak() const { return peak_; }      ///< Most bytes live at once.
  std::size_t extent() const { return extent_; }  ///< Highest end of a block so far, gaps included.

 private:
  static std::size_t rounded(std::size_t bytes) { return (bytes + kGrain - 1) / kGrain * kGrain; }

  std::map<std::size_t, std::size_t> gaps_;  // offset -> bytes; never adjacent
  std::size_t live_ = 0;
  std::size_t peak_ = 0;
  std::size_t extent_ = 0;
};

/// The Program's buffers on the host: its Allocates and Frees are carried out on a heap of touched
/// pages, so that peak memory is measured and no step has page faults.
class ProgramMemory {
 public:
  /// \param plan  must outlive it.
  explicit ProgramMemory(const RankPlan& plan);

  /// Memory that reserve() takes: static memory, and the heap's extent if buffers are allocated and
  /// freed in the order of issue, plus an eighth for the gaps that another order may leave.
  Bytes need() const;

  /// Names the first allocation, in the order of issue, with which more than `available` is live:
  /// "buffer act of kernel fc1 (...) asks for 1.2 GB" and how much was left; nothing if all fits.
  std::optional<std::string> shortage(Bytes available) const;

  /// Allocates and touches the memory.
  /// \return kInfeasible if the system refuses.
  Status reserve();

  void begin_step();
  /// Carries out the Allocates of an instance that starts.
  /// \return kInfeasible if fragmentation leaves no room.
  Status starts(std::size_t instance);
  /// Carries out the Frees that waited for this instance last.
  void finished(std::size_t instance);

  /// Most bytes live at once so far, static memory included.
  Bytes peak() const;
  /// Memory that is held in excess of the peak.
  Bytes gaps() const;

 private:
  struct Buffer {
    std::size_t bytes = 0;
    std::size_t allocate = 0;  // index of its Allocate in the events
    std::size_t anchors = 0;   // number of instances for which its Free waits
    // State in the present step:
    std::size_t waiting = 0;
    bool live = false;
    std::size_t offset = 0;
  };
  std::string name_of(std::size_t event) const;

  const RankPlan& plan_;
  std::size_t static_bytes_ = 0;
  std::size_t peak_ = 0;    // peak of the heap over all steps, bytes
  std::size_t extent_ = 0;  // bytes to reserve for the heap
  std::vector<Buffer> buffers_;
  std::vector<std::vector<std::uint32_t>> allocated_by_;  // instance -> buffers
  std::vector<std::vector<std::uint32_t>> freed_by_;  // instance -> buffers whose Free waits for it
  Heap heap_;
  Pages pages_;
};

}  // namespace foreshard::replay::host
