/// \file
/// The streams of one rank as an event loop on one thread, because a core does one thing at a time.
///
/// Instances are issued in their order; a Sync delays issuing until its predecessors are done. Each
/// stream runs its issued instances one after another; the next one may start when its predecessors
/// are done. Among the instances that may start,
///  - communications start at once, and are advanced between kernels;
///  - kernels and HostWork run to completion, the earliest issued first.
///
/// **Turns.** A core cannot compute and communicate at the same time. While a communication makes
/// progress, no kernel starts: an operation that all members have reached runs to its end, as in
/// the simulator, where collectives occupy a device's only multiprocessor. A communication counts
/// as stalled when nothing happened for kPatience: other members are busy, and the rank computes in
/// the meantime.
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

/// A few times the time of a ring's chunk (kChunk at 10 GB/s: 26 us), and short compared with a
/// kernel.
inline constexpr Seconds kPatience = 60_us;

/// Carries out instances: the executor, or a test that records the calls.
class Work {
 public:
  virtual ~Work() = default;

  /// Time since the step's beginning.
  virtual Seconds now() = 0;
  /// An instance starts: carries out its Allocates.
  /// \return kInfeasible if there is no room.
  virtual Status starts(std::size_t instance) = 0;
  /// An instance is done: carries out the Frees that waited for nothing else.
  virtual void finished(std::size_t instance) = 0;
  /// Runs the kernel to its end.
  virtual void compute(std::size_t instance) = 0;
  virtual Status begin(std::size_t communication) = 0;
  virtual Result<Progress> advance(std::size_t communication) = 0;
  /// Called when nothing can be done at the moment.
  virtual void idle() = 0;
};

class Streams {
 public:
  /// \param plan  must outlive it.
  explicit Streams(const RankPlan& plan);

  /// Runs the step once.
  /// \return errors of `work`; kIo if the watch stops it.
  Result<StepTimes> run(Work& work, Watch& watch);

 private:
  struct Stream {
    std::vector<std::size_t> order;  // instances, in the order of issue
    std::size_t next = 0;
    bool running = false;  // whether the next instance is a communication under way
    Seconds moved;         // when that communication last made progress
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
  std::vector<Body> bodies_;  // one per instance
  std::vector<Stream> streams_;
  std::vector<bool> finished_;  // one per instance
  std::size_t issued_ = 0;
  std::size_t left_ = 0;
  StepTimes times_;
};

}  // namespace foreshard::replay::host
