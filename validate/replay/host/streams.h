/// \file
/// The streams of one rank as an event loop on one thread: one core does one thing at a time.
///
/// Instances are issued in their order; a Sync holds issuing up until its predecessors are done.
/// Each stream runs what was issued to it one after another; its next instance may start when its
/// predecessors are done. Of what may start,
///  - communications start at once, whatever else there is, and are advanced between kernels;
///  - kernels and HostWork run to completion, the earliest issued first.
///
/// **Turns.** A core cannot compute and communicate at once. While a communication moves, no kernel
/// starts: an operation that all its members have reached runs through, as the simulator's
/// collectives do that hold a device's only multiprocessor. It counts as standing still when
/// nothing happened for kPatience: the others are busy elsewhere, and the rank computes meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "validate/replay/executor.h"
#include "validate/replay/host/collective.h"
#include "validate/replay/plan.h"
#include "validate/replay/watch.h"

namespace foreshard::replay::host {

/// A few times what a chunk of a ring needs (kChunk at 10 GB/s: 26 us), and little beside a kernel.
inline constexpr Seconds kPatience = 60_us;

/// What instances do: the executor, or a test's record of calls.
class Work {
 public:
  virtual ~Work() = default;

  /// Time since the step's beginning.
  virtual Seconds now() = 0;
  /// An instance starts: its Allocates happen.
  /// \return kInfeasible.
  virtual Status starts(std::size_t instance) = 0;
  /// Its Frees happen, those whose other instances are done.
  virtual void finished(std::size_t instance) = 0;
  /// Runs the kernel to its end.
  virtual void compute(std::size_t instance) = 0;
  virtual Status begin(std::size_t communication) = 0;
  virtual Result<Progress> advance(std::size_t communication) = 0;
  /// Nothing can be done just now.
  virtual void idle() = 0;
};

class Streams {
 public:
  /// \param plan  must outlive it.
  explicit Streams(const RankPlan& plan);

  /// The step once.
  /// \return what `work` reports; kIo if the watch stops it.
  Result<StepTimes> run(Work& work, Watch& watch);

 private:
  struct Stream {
    std::vector<std::size_t> order;  // Instances.
    std::size_t next = 0;
    bool running = false;  // Its next one is a communication under way...
    Seconds moved;         // ... that last moved then.
    std::size_t head() const { return order[next]; }
    bool done() const { return next == order.size(); }
  };
  enum class Body : std::uint8_t { kKernel, kCommunication, kSync, kHostWork };

  bool ready(std::size_t instance) const;
  void finish(std::size_t instance, Work& work, Watch& watch);
  bool issue(Work& work, Watch& watch);
  std::optional<std::size_t> next_on_core() const;
  Result<bool> start_communications(Work& work, Watch& watch);
  Result<bool> advance_communications(Work& work, Watch& watch);
  bool moving(Seconds now) const;
  Status run_on_core(std::size_t instance, Work& work, Watch& watch);
  void report(Watch& watch) const;

  const RankPlan& plan_;
  std::vector<Body> bodies_;  // By instance.
  std::vector<Stream> streams_;
  std::vector<bool> finished_;  // By instance.
  std::size_t issued_ = 0;
  std::size_t left_ = 0;
  StepTimes times_;
};

}  // namespace foreshard::replay::host
