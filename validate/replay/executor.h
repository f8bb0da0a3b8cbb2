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
  virtual std::optional<Error> prepare(const RankPlan& plan, Watch& watch) = 0;

  /// The step once. All ranks call it equally often.
  /// \pre prepare succeeded.
  virtual Result<StepTimes> step(Watch& watch) = 0;

  /// The step once, with pattern.h's numbers in every communication.
  /// \pre prepare succeeded.
  virtual Result<Verification> verify(Watch& watch) = 0;

  virtual measure::Machine machine() const = 0;
  virtual std::string device() const = 0;
  virtual Bytes peak_memory() const = 0;
  virtual Bytes scratch() const = 0;
  virtual measure::Reading reading() const = 0;
};

/// How ranks are carried out.
struct ExecutorOptions {
  measure::Mode mode = measure::Mode::kWhole;
  /// kOneRank: by instance, when a communication's result is there (from the step's beginning).
  std::vector<Seconds> arrivals{};
  std::int32_t local_rank = 0;  ///< Device of this host to take.
  bool shared = false;          ///< Several ranks share device 0.
};

/// \return kUnsupported, with the reason and what would help, where this build or this machine has
///     none ("no GPU: cudaGetDeviceCount says ...").
Result<std::unique_ptr<Executor>> make_host_executor(const ExecutorOptions& options, Store& store);
Result<std::unique_ptr<Executor>> make_gpu_executor(const ExecutorOptions& options, Store& store);

}  // namespace foreshard::replay
