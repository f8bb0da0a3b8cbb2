/// \file
/// What a replay measured: the answer to a Prediction. `foreshard-replay` writes it, `compare`
/// and `calibrate` read it (json.h).
///
/// Times of a task are given per *instance*, in the order of the Program's expander
/// (strategies/program/ir/expand.h), so that prediction and measurement meet task by task.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

#include "strategies/program/ir/kernel.h"

namespace foreshard::measure {

/// How a Program was replayed.
enum class Mode : std::uint8_t {
  kWhole,    ///< Every rank on a device of its own (or, with `shared`, several on one).
  kOneRank,  ///< One rank alone; what it receives arrives when the simulator says.
};

/// What a provider is called whose kernels are the replay's own (validate/replay/host, gpu).
inline constexpr std::string_view kOwnKernels = "foreshard";

/// Whose kernels ran, by what they compute: a library ("cublas", "blas") or `kOwnKernels`.
struct Providers {
  std::string gemm{};
  std::string attention{};
  std::string pass{};
  bool operator==(const Providers&) const = default;

  const std::string& of(const Kernel& kernel) const;
};

/// One host.
struct Machine {
  std::string name{};
  /// What was found there, for people and for calibration's `source:`; by name: "processor",
  /// "device", "driver", "cuda", "nccl", "cublas", "mpi", "blas", "kernel" ...
  std::map<std::string, std::string> facts{};
  std::string topology{};  ///< As the system prints it (`nvidia-smi topo -m`); may be empty.
  bool operator==(const Machine&) const = default;
};

/// Of a device, read beside the run. What a device does not tell is empty.
struct Reading {
  std::string when{};  ///< "before", "after".
  std::optional<double> clock_mhz{};
  std::optional<double> memory_clock_mhz{};
  std::optional<double> celsius{};
  std::optional<double> watts{};
  /// Why the device does not run at its highest clock: "idle", "applications_clocks",
  /// "sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal", "hw_thermal", "hw_power_brake",
  /// "display_clocks".
  std::vector<std::string> throttle{};
  bool operator==(const Reading&) const = default;
};

struct Span {
  double low = 0;
  double median = 0;
  double high = 0;
  bool operator==(const Span&) const = default;
};
/// What readings during the measured steps have in common.
struct During {
  std::int64_t samples = 0;
  std::optional<Span> clock_mhz{};
  std::optional<Span> celsius{};
  std::optional<Span> watts{};
  std::vector<std::string> throttle{};  ///< All that were seen, ascending.
  bool operator==(const During&) const = default;
};
/// \return nothing where no reading tells anything.
std::optional<During> during_of(const std::vector<Reading>& readings);

/// One instance over all repeats. Start and finish count from the instant at which all ranks
/// began the step.
struct TaskTimes {
  Seconds start{};   ///< Median; of a communication, when this member reached it.
  Seconds finish{};  ///< Median.
  Seconds low{};     ///< 10th percentile of finish - start.
  Seconds median{};  ///< Of finish - start.
  Seconds high{};    ///< 90th percentile.
  /// kOneRank, of a communication: how long its result had been there when the rank needed it
  /// (negative: how long the rank waited for it).
  Seconds slack{};
  /// kWhole, of a communication: from when its last member reached it to when its last member was
  /// done. The median of that over the repeats, which the members' own medians do not tell where
  /// another one is last each time. Empty in files that were written before this was measured.
  std::optional<Seconds> lasted{};
  bool operator==(const TaskTimes&) const = default;
};

/// What it costs to time a rank's tasks, each of which stands between two events of the device.
struct TimingCost {
  std::int64_t events = 0;  ///< Of a step, that nothing but the timing needs.
  /// Median difference between a step and the next one, which goes without these events; negative
  /// where chance is larger.
  Seconds step{};
  Seconds event{};  ///< Of that, for each event.
  bool operator==(const TimingCost&) const = default;
};

/// A matrix product of a rank, and what its kernel - the library's first proposal - costs beside
/// the fastest of those that were tried. Medians of each alone.
struct GemmChoice {
  std::string kernel{};    ///< "gemm 2048x12288x12288 bf16".
  std::int64_t count = 0;  ///< Instances of a step.
  std::int64_t tried = 0;  ///< Proposals that ran.
  Seconds taken{};
  Seconds fastest{};
  bool operator==(const GemmChoice&) const = default;
};

struct RankRecord {
  std::int32_t rank = 0;
  std::int32_t machine = 0;  ///< Index into Measurement::machines.
  std::string device{};      ///< "NVIDIA H200, GPU-3f2a...", "core 3".
  /// Per repeat, from the common beginning to the end of the rank's last instance.
  std::vector<Seconds> steps{};
  std::vector<TaskTimes> tasks{};  ///< By instance of the rank's role.
  Bytes peak_memory{};             ///< Of the Program's buffers, as the allocator had them.
  Bytes scratch{};                 ///< What the replay holds beside them: operands, workspaces.
  std::vector<Reading> readings{};
  std::optional<During> during{};      ///< Empty where the device does not tell.
  std::optional<TimingCost> timing{};  ///< Where timing puts something between the tasks.
  std::vector<GemmChoice> gemms{};     ///< Where the library was asked for its proposals.
  bool operator==(const RankRecord&) const = default;
};

struct Measurement {
  std::string program{};      ///< Its name.
  std::string fingerprint{};  ///< Of the Program (fingerprint.h).
  std::string backend{};      ///< "cuda" or "host".
  Providers providers{};
  Mode mode = Mode::kWhole;
  bool shared = false;    ///< Several ranks on one device: correct, but no time of it counts.
  std::string date{};     ///< ISO 8601, UTC.
  std::string version{};  ///< Of foreshard.
  std::int64_t warmup = 0;
  std::int64_t repeats = 0;
  std::vector<Machine> machines{};
  std::vector<RankRecord> ranks{};  ///< Ascending; all of the Program's, or the one of kOneRank.
  bool operator==(const Measurement&) const = default;
};

/// Of the ranks' last finishes per repeat: the step.
struct StepTimes {
  Seconds median{};
  Seconds low{};   ///< 10th percentile.
  Seconds high{};  ///< 90th percentile.
  /// (high - low) / median: the spread that a prediction cannot be expected to beat.
  double spread() const { return (high - low) / median; }
};
/// \pre the measurement has a rank and a repeat.
StepTimes step_of(const Measurement& measurement);

/// What a reader of the step should know, a sentence each: what timing its tasks cost (of the rank
/// where it cost most), and what other kernels of matrix products would save (likewise).
std::vector<std::string> remarks_of(const Measurement& measurement);
/// What speaks against the clocks of the measured steps, a sentence each: a device was slowed down
/// for another reason than being idle, its application's clocks or its power cap, or its clock fell
/// by more than 5 % while they were measured.
std::vector<std::string> remarks_on_clocks(const Measurement& measurement);

/// The q-quantile (0 to 1) of `values`, linear between neighbours.
/// \pre !values.empty()
Seconds quantile(std::vector<Seconds> values, double q);

}  // namespace foreshard::measure
