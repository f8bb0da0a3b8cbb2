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
#include <vector>

#include "base/units.h"

namespace foreshard::measure {

/// How a Program was replayed.
enum class Mode : std::uint8_t {
  kWhole,    ///< Every rank on a device of its own (or, with `shared`, several on one).
  kOneRank,  ///< One rank alone; what it receives arrives when the simulator says.
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
  bool operator==(const Reading&) const = default;
};

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
  bool operator==(const TaskTimes&) const = default;
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
  bool operator==(const RankRecord&) const = default;
};

struct Measurement {
  std::string program{};      ///< Its name.
  std::string fingerprint{};  ///< Of the Program (fingerprint.h).
  std::string backend{};      ///< "cuda" or "host".
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

/// The q-quantile (0 to 1) of `values`, linear between neighbours.
/// \pre !values.empty()
Seconds quantile(std::vector<Seconds> values, double q);

}  // namespace foreshard::measure
