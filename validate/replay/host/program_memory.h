/// \file
/// The Program's buffers on the host: its Allocates and Frees on a heap of real, touched pages, so
/// that peak memory is measured and no step meets a page for the first time.
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

  /// What reserve() takes: static memory, and what the heap needs if buffers come and go in the
  /// order of issue, with an eighth for the gaps that another order leaves.
  Bytes need() const;

  /// Where more than `available` is live for the first time, in the order of issue: "buffer act of
  /// kernel fc1 (...) asks for 1.2 GB" and how much was left; nothing if all fits.
  std::optional<std::string> shortage(Bytes available) const;

  /// \return kInfeasible.
  Status reserve();

  void begin_step();
  /// The Allocates of an instance that starts.
  /// \return kInfeasible if gaps leave no room.
  Status starts(std::size_t instance);
  /// The Frees of which it was the last.
  void finished(std::size_t instance);

  /// Most bytes live at once so far, static ones included.
  Bytes peak() const;
  /// What is held beside the peak.
  Bytes gaps() const;

 private:
  struct Buffer {
    std::size_t bytes = 0;
    std::size_t allocate = 0;  // Index of its Allocate in the events.
    std::size_t anchors = 0;   // Instances that its Free waits for.
    // In this step:
    std::size_t waiting = 0;
    bool live = false;
    std::size_t offset = 0;
  };
  std::string name_of(std::size_t event) const;

  const RankPlan& plan_;
  std::size_t static_bytes_ = 0;
  std::size_t peak_ = 0;    // Of the heap, over all steps.
  std::size_t extent_ = 0;  // In the order of issue.
  std::vector<Buffer> buffers_;
  std::vector<std::vector<std::uint32_t>> allocated_by_;  // By instance: buffers.
  std::vector<std::vector<std::uint32_t>> freed_by_;
  Heap heap_;
  Pages pages_;
};

}  // namespace foreshard::replay::host
