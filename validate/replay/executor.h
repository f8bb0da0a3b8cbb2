/// \file
/// What carries out a rank's plan: CPUs with MPI (host/), a GPU with NCCL (gpu/). One object per
/// process and rank. Everything else of a replay - identity, repeats, statistics, the watchdog,
/// the file - is the same for all of them (session.h).
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

/// One run of the step. Start and finish by instance, from the instant at which all ranks began.
struct StepTimes {
  Seconds total{};
  std::vector<Seconds> start{};
  std::vector<Seconds> finish{};
  std::vector<Seconds> slack{};  ///< As TaskTimes::slack; empty but for kOneRank.
};

/// One run of the step without what times its tasks.
struct BareStep {
  Seconds total{};
  std::int64_t events = 0;  ///< How many fewer of the device's events it took.
};

/// What a run with known numbers delivered.
struct Verification {
  std::int64_t operations = 0;  ///< Communications checked.
  std::int64_t elements = 0;
  /// "all_reduce grads #3 on rank 2: element 17 is 5, not 6"; at most 20.
  std::vector<std::string> faults{};
};

class Executor {
 public:
  virtual ~Executor() = default;

  /// Allocates, makes the plan's communicators, loads libraries. `plan` must outlive the executor.
  /// \return kInfeasible where memory does not suffice (names task, bytes asked for and free),
  ///     kUnsupported for a kernel that it cannot run, kIo where a library or a peer fails.
  virtual Status prepare(const RankPlan& plan, Watch& watch) = 0;

  /// The step once. All ranks call it equally often.
  /// \pre prepare succeeded.
  virtual Result<StepTimes> step(Watch& watch) = 0;

  /// The step once, timed as a whole only. All ranks call it equally often.
  /// \return nothing, at once, where timing a task puts nothing between it and the next.
  /// \pre prepare succeeded.
  virtual Result<std::optional<BareStep>> bare_step(Watch&) { return std::optional<BareStep>(); }

  /// The step once, with pattern.h's numbers in every communication.
  /// \pre prepare succeeded.
  virtual Result<Verification> verify(Watch& watch) = 0;

  virtual measure::Machine machine() const = 0;
  virtual measure::Providers providers() const = 0;
  virtual std::string device() const = 0;
  /// What tells the device from all others of all hosts, where no other rank may use it; empty
  /// where several may, or the device does not tell.
  virtual std::string sole_device() const { return {}; }
  virtual Bytes peak_memory() const = 0;
  virtual Bytes scratch() const = 0;
  /// Of any thread, also while a step is under way.
  virtual measure::Reading reading() const = 0;
  /// How the matrix products' kernels were chosen, where a library proposed several.
  virtual std::vector<measure::GemmChoice> gemms() const { return {}; }
};

/// How ranks are carried out.
struct ExecutorOptions {
  measure::Mode mode = measure::Mode::kWhole;
  /// kOneRank: by instance, when a communication's result is there (from the step's beginning).
  std::vector<Seconds> arrivals{};
  std::int32_t local_rank = 0;  ///< Device of this host to take, if it shows more than one.
  bool shared = false;          ///< Several ranks share device 0.
};

/// \return kUnsupported, with the reason and what would help, where this build or this machine has
///     none ("no GPU: cudaGetDeviceCount says ...").
Result<std::unique_ptr<Executor>> make_host_executor(const ExecutorOptions& options, Store& store);
Result<std::unique_ptr<Executor>> make_gpu_executor(const ExecutorOptions& options, Store& store);

}  // namespace foreshard::replay
