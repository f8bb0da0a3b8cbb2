/// \file
/// The interface of backends that carry out a rank's plan: CPUs with MPI (host/), a GPU with NCCL
/// (gpu/). There is one object per process and rank. Everything else in a replay (identity,
/// repeats, statistics, the watchdog, the file) is the same for all backends (session.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "validate/measurement/measurement.h"
#include "validate/replay/plan.h"
#include "validate/replay/store.h"
#include "validate/replay/watch.h"

namespace foreshard::replay {

/// One run of the step. Start and finish have one entry per instance and count from the instant at
/// which all ranks began.
struct StepTimes {
  Seconds total{};
  std::vector<Seconds> start{};
  std::vector<Seconds> finish{};
  std::vector<Seconds> slack{};  ///< One per instance (TaskTimes::slack); empty unless kOneRank.
};

/// One run of the step without timing of its tasks.
struct BareStep {
  Seconds total{};
  std::int64_t events = 0;  ///< Device events saved against a timed step.
};

/// Result of a run with known numbers.
struct Verification {
  std::int64_t operations = 0;  ///< Communications that were checked.
  std::int64_t elements = 0;
  /// "all_reduce grads #3 on rank 2: element 17 is 5, not 6"; at most 20.
  std::vector<std::string> faults{};
};

class Executor {
 public:
  virtual ~Executor() = default;

  /// Allocates memory, creates the plan's communicators, loads libraries. `plan` must outlive the
  /// executor.
  /// \return kInfeasible if memory does not suffice (names the task, the bytes requested and free),
  ///     kUnsupported for a kernel that it cannot run, kIo if a library or a peer fails.
  virtual Status prepare(const RankPlan& plan, Watch& watch) = 0;

  /// Runs the step once. All ranks call it equally often.
  /// \pre prepare succeeded.
  virtual Result<StepTimes> step(Watch& watch) = 0;

  /// Runs the step once, timed only as a whole. All ranks call it equally often.
  /// \return nothing, at once, if timing adds nothing between tasks.
  /// \pre prepare succeeded.
  virtual Result<std::optional<BareStep>> bare_step(Watch&) { return std::optional<BareStep>(); }

  /// Runs the step once, with pattern.h's numbers in every communication.
  /// \pre prepare succeeded.
  virtual Result<Verification> verify(Watch& watch) = 0;

  virtual measure::Machine machine() const = 0;
  virtual measure::Providers providers() const = 0;
  virtual std::string device() const = 0;
  /// Identity of the device among all devices of all hosts, if no other rank may use it; empty if
  /// several ranks may share it, or if its identity is unknown.
  virtual std::string sole_device() const { return {}; }
  virtual Bytes peak_memory() const = 0;
  virtual Bytes scratch() const = 0;
  /// May be called from any thread, also while a step is under way.
  virtual measure::Reading reading() const = 0;
  /// How the kernels of matrix products were chosen, if a library proposed several.
  virtual std::vector<measure::GemmChoice> gemms() const { return {}; }
};

/// Options that all backends share.
struct ExecutorOptions {
  measure::Mode mode = measure::Mode::kWhole;
  /// kOneRank: one per instance, when a communication's result arrives (from the step's beginning).
  std::vector<Seconds> arrivals{};
  std::int32_t local_rank = 0;  ///< Index of the device to use, if the host shows several.
  bool shared = false;          ///< Several ranks share device 0.
};

/// \return kUnsupported, with the reason and a remedy, if this build or this machine lacks the
///     backend ("no GPU: cudaGetDeviceCount says ...").
Result<std::unique_ptr<Executor>> make_host_executor(const ExecutorOptions& options, Store& store);
Result<std::unique_ptr<Executor>> make_gpu_executor(const ExecutorOptions& options, Store& store);

}  // namespace foreshard::replay
