/// \file
/// What a replay measured, the counterpart of a Prediction. `foreshard-replay` writes it, `compare`
/// and `calibrate` read it (json.h).
///
/// A task's times are given per *instance*, in the order of the Program's expander
/// (strategies/program/ir/expand.h), so that prediction and measurement can be compared task by
/// task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/record/forward.h"
#include "base/result.h"
#include "base/units.h"
#include "base/yaml/names.h"

#include "strategies/program/ir/kernel.h"
#include "strategies/program/ir/program.h"

namespace foreshard::measure {

/// How a Program was replayed.
enum class Mode : std::uint8_t {
  kWhole,    ///< Every rank on a device of its own (or, with `shared`, several on one).
  kOneRank,  ///< One rank alone; results of communications arrive when the simulator says.
};

const yaml::Names<Mode>& yaml_names(const Mode*);

/// The provider's name for the replay's own kernels (validate/replay/host, validate/replay/gpu).
inline constexpr std::string_view kOwnKernels = "foreshard";

/// Provider of the kernels of each family: a library ("cublas", "blas") or `kOwnKernels`.
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
  /// Facts about the host, for people and for calibration's `source:`. Keys: "processor", "device",
  /// "driver", "cuda", "nccl", "cublas", "mpi", "blas", "kernel" ...
  std::map<std::string, std::string> facts{};
  std::string topology{};  ///< Output of `nvidia-smi topo -m` or the like; may be empty.
  bool operator==(const Machine&) const = default;
};

/// State of a device around the run. Values that the device does not report are empty.
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
/// Summary of the readings during the measured steps.
struct During {
  std::int64_t samples = 0;
  std::optional<Span> clock_mhz{};
  std::optional<Span> celsius{};
  std::optional<Span> watts{};
  std::vector<std::string> throttle{};  ///< All reasons that were seen, ascending.
  bool operator==(const During&) const = default;
};
/// \return nothing if no reading reports anything.
std::optional<During> during_of(const std::vector<Reading>& readings);

/// One instance over all repeats. Start and finish count from the instant at which all ranks
/// began the step.
struct TaskTimes {
  Seconds start{};   ///< Median; for a communication, when this member reached it.
  Seconds finish{};  ///< Median.
  Seconds low{};     ///< 10th percentile of finish - start.
  Seconds median{};  ///< Median of finish - start.
  Seconds high{};    ///< 90th percentile of finish - start.
  /// kOneRank, communications only: how long the result had been there when the rank needed it
  /// (negative: how long the rank waited for it).
  Seconds slack{};
  /// kWhole, communications only: time from the arrival of the last member until the last member
  /// was done, as the median over the repeats. The members' own medians do not give it if another
  /// member is last each time. Empty in files written before this was measured.
  std::optional<Seconds> lasted{};
  bool operator==(const TaskTimes&) const = default;
};

/// The overhead of timing a rank's tasks, each of which is enclosed by two device events.
struct TimingCost {
  std::int64_t events = 0;  ///< Events of a step that only the timing needs.
  /// Median difference between a step and the next one, which runs without these events; negative
  /// if noise is larger.
  Seconds step{};
  Seconds event{};  ///< `step` per event.
  bool operator==(const TimingCost&) const = default;
};

/// A matrix product of a rank: the time of the kernel in use (the library's first proposal) against
/// the fastest of the proposals that were tried. Times are medians, each measured alone.
struct GemmChoice {
  std::string kernel{};    ///< "gemm 2048x12288x12288 bf16".
  std::int64_t count = 0;  ///< Instances in a step.
  std::int64_t tried = 0;  ///< Proposals that ran.
  Seconds taken{};
  Seconds fastest{};
  bool operator==(const GemmChoice&) const = default;
};

struct RankRecord {
  std::int32_t rank = 0;
  std::int32_t machine = 0;  ///< Index into Measurement::machines.
  std::string device{};      ///< "NVIDIA H200, GPU-3f2a...", "core 3".
  /// One per repeat: from the common beginning to the end of the rank's last instance.
  std::vector<Seconds> steps{};
  std::vector<TaskTimes> tasks{};  ///< One per instance of the rank's role.
  Bytes peak_memory{};             ///< Peak of the Program's buffers in the allocator.
  Bytes scratch{};                 ///< Other memory of the replay: operands, workspaces.
  std::vector<Reading> readings{};
  std::optional<During> during{};      ///< Empty if the device reports nothing.
  std::optional<TimingCost> timing{};  ///< Empty if timing adds nothing between tasks.
  std::vector<GemmChoice> gemms{};     ///< Empty unless the library was asked for proposals.
  bool operator==(const RankRecord&) const = default;
};

struct Measurement {
  std::string program{};      ///< The Program's name.
  std::string fingerprint{};  ///< The Program's fingerprint (fingerprint_of).
  std::string backend{};      ///< "cuda" or "host".
  Providers providers{};
  Mode mode = Mode::kWhole;
  bool shared = false;    ///< Several ranks on one device: results are correct, times meaningless.
  std::string date{};     ///< ISO 8601, UTC.
  std::string version{};  ///< Version of foreshard.
  std::int64_t warmup = 0;
  std::int64_t repeats = 0;
  std::vector<Machine> machines{};
  std::vector<RankRecord> ranks{};  ///< Ascending; all ranks of the Program, or one (kOneRank).
  bool operator==(const Measurement&) const = default;
};

/// Step time. The step of a repeat ends when the last rank has finished.
struct StepTimes {
  Seconds median{};
  Seconds low{};   ///< 10th percentile.
  Seconds high{};  ///< 90th percentile.
  /// (high - low) / median: the spread that a prediction cannot be expected to beat.
  double spread() const { return (high - low) / median; }
};
/// \pre the measurement has a rank and a repeat.
StepTimes step_of(const Measurement& measurement);

/// Caveats of the step time, one sentence each: the cost of timing the tasks, and what the fastest
/// kernels of matrix products would save. Each is given for the rank where it is largest.
std::vector<std::string> remarks_of(const Measurement& measurement);
/// Caveats of the devices' clocks during the measured steps, one sentence each: a device was slowed
/// down for a reason other than being idle, its application clocks or its power cap; or its lowest
/// clock was more than 5 % below its highest.
std::vector<std::string> remarks_on_clocks(const Measurement& measurement);

/// The q-quantile of `values`, interpolated linearly between neighbours.
/// \pre !values.empty(); 0 <= q <= 1.
Seconds quantile(std::vector<Seconds> values, double q);

/// The simulated times at which the results of a rank's communications arrive. A replay of the rank
/// alone needs them. Schema "foreshard.arrivals/1":
///
///     {"schema": "foreshard.arrivals/1", "program": "gpt", "fingerprint": "3f2a...", "rank": 5,
///      "seconds": [null, 0.00123, ...]}      // by instance; null: no communication
inline constexpr std::string_view kArrivalsSchema = "foreshard.arrivals/1";

struct Arrivals {
  std::string program{};
  std::string fingerprint{};
  std::int32_t rank = 0;
  /// One per instance, counted from the step's beginning; empty: no communication.
  std::vector<std::optional<Seconds>> seconds{};
  bool operator==(const Arrivals&) const = default;
};

std::string to_json(const Arrivals& arrivals);
const record::Record<Arrivals>& record_of(const Arrivals*);
/// \return kInvalidInput, naming the place; kUnsupported for another schema version.
Result<Arrivals> arrivals_from_json(std::string_view text);

/// 64-bit FNV-1a of the Program's canonical JSON, as 16 hexadecimal digits. `launch_time` counts
/// as 0: it is a forecast of the host and does not change the work, so a Program predicted on a
/// calibrated cluster has the same fingerprint as the one that was measured.
/// Source: Fowler, Noll and Vo, "The FNV Non-Cryptographic Hash Algorithm" (IETF
/// draft-eastlake-fnv).
/// \pre verify(program) finds nothing.
std::string fingerprint_of(const program::Program& program);

/// A measurement as JSON, schema "foreshard.measurement/1" (docs/replay.md). Equal measurements
/// give equal bytes; reading what was written gives the same measurement exactly.
inline constexpr std::string_view kMeasurementSchema = "foreshard.measurement/1";

/// Tasks are written as columns (one array per field), times in seconds.
std::string to_json(const Measurement& measurement);
const record::Record<Measurement>& record_of(const Measurement*);

/// Reads strictly: a missing, unknown or repeated key, a wrong type, columns of different lengths
/// or a number out of range are errors that name the place.
/// \return kInvalidInput; kUnsupported for another schema version.
Result<Measurement> measurement_from_json(std::string_view text);

}  // namespace foreshard::measure
