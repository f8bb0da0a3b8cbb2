/// \file
/// The Program's buffers on the host: its Allocates and Frees are carried out on a heap of touched
/// pages, so that peak memory is measured and no step has page faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "validate/replay/host/memory.h"
#include "validate/replay/plan.h"

namespace foreshard::replay::host {

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
