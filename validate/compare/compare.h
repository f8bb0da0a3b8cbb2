/// \file
/// Compares a prediction with a measurement: `foreshard compare`.
///
/// Both say when each instance of each rank was reached, began and ended. Sums of durations alone
/// do not explain a step, because overlapped work costs nothing. Therefore each instant of a rank's
/// time is *booked* exactly once, in the prediction and in the measurement, under the first of
/// these that applies:
///
///     a kernel - a communication under way - waiting for a member of one - the host - nothing
///
/// up to the end of the step. The booked times of all kinds add up to the step, and so do their
/// means over ranks. The identity
///
///     sum over kinds (predicted booked - measured booked)  =  predicted step - measured step
///
/// attributes the step's error exactly to kinds of tasks (`share_of_error`). The medians of tasks
/// need not add up to the median of the steps: the difference, of either sign, is booked as
/// "between medians".
///
/// The duration of a communication is  latest finish - latest start  over its members. It was
/// measured per repeat (measure::TaskTimes::lasted); for files without that field it is computed
/// from medians. Members that arrive earlier wait, which is booked separately.
///
/// **Turns.** A communication may occupy the whole device: a CPU core does one thing at a time. A
/// predicted kernel then stands still while a communication is under way. Its predicted time counts
/// without these pauses, and the prediction is booked with communications before kernels.
///
/// When one rank was replayed alone (measure::Mode::kOneRank), the results of communications arrive
/// when the simulator says. Their durations are therefore not compared: their booked time counts as
/// waiting, and `slack` has the result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/page.h"
#include "base/record/forward.h"
#include "base/result.h"
#include "base/units.h"

#include "sim/simulate/prediction.h"
#include "strategies/program/ir/program.h"
#include "topology/cluster_view.h"
#include "validate/measurement/measurement.h"

namespace foreshard::compare {

struct Pair {
  Seconds predicted{};
  Seconds measured{};
  /// predicted / measured - 1; nothing if `measured` is 0.
  std::optional<double> error() const;
};

/// The categories under which time is booked.
enum class Kind : std::uint8_t {
  kKernel,
  kCommunication,
  kWaiting,         ///< Waiting for other members of a communication.
  kHost,            ///< Sync and HostWork.
  kIdle,            ///< Nothing runs: pipeline bubbles, late launches.
  kBetweenMedians,  ///< See above; measured side only.
};

/// All tasks of one kind. `time` is a rank's sum, averaged over ranks; `each` is per instance.
struct Row {
  Kind kind = Kind::kKernel;
  /// "gemm", "attention_fwd", "adam"; "all_reduce 12.0 MiB, 2 ranks"; "waiting for other ranks".
  std::string name{};
  std::int64_t count = 0;  ///< Instances in a step, over all ranks.
  Pair time{};
  Pair each{};
  /// Sum of the instances' 10 % to 90 % intervals (measured), divided by the sum of their medians.
  double spread = 0;
  Pair booked{};
  std::optional<double> share_of_step{};   ///< measured booked / measured step
  std::optional<double> share_of_error{};  ///< See above; nothing if the step has no error.
};

struct StreamRow {
  std::string name{};
  Pair busy{};  ///< Time during which the stream was busy, without waiting; mean over ranks.
};

struct RankRow {
  std::int32_t rank = 0;
  Pair finish{};
  Bytes predicted_peak{};
  Bytes measured_peak{};
};

/// How far communication overlaps with computation; means over ranks.
struct Overlap {
  Pair computing{};
  Pair communicating{};           ///< Time with a communication under way, without waiting.
  Pair hidden{};                  ///< Part of `communicating` that overlaps with a kernel.
  std::array<Pair, 5> exposed{};  ///< Booked communication time, by program::Purpose.
};

/// kOneRank: how early the results of communications were there when the rank needed them.
struct Slack {
  std::int64_t communications = 0;
  std::int64_t late = 0;  ///< Communications for which the rank waited.
  Seconds waited{};       ///< Sum of these waits.
  Seconds least{};        ///< Least slack; negative: the longest wait.
};

struct Comparison {
  std::string program{};
  std::string cluster{};
  std::string fingerprint{};
  std::string backend{};
  std::string date{};
  measure::Mode mode = measure::Mode::kWhole;
  std::int64_t ranks = 0;  ///< Ranks that are compared.
  std::int64_t repeats = 0;
  Pair step{};
  Seconds low{};      ///< 10th percentile of the measured steps.
  Seconds high{};     ///< 90th percentile of the measured steps.
  double spread = 0;  ///< (high - low) / median
  /// One row per kind, ordered by the larger of the predicted and measured booked times,
  /// descending.
  std::vector<Row> kinds{};
  /// One row per distinct task, ordered by |predicted booked - measured booked|, descending.
  std::vector<Row> residuals{};
  std::vector<StreamRow> streams{};
  Overlap overlap{};
  std::vector<RankRow> per_rank{};
  std::optional<Slack> slack{};
  std::vector<std::string> remarks{};
};

struct Options {
  bool turns = false;  ///< See above.
};
/// The options for the devices of `cluster`: turns, if every device has a single multiprocessor.
Options options_for(const ClusterView& cluster);

/// \param prediction  a prediction of this Program, with its time line (SimulateOptions::timeline)
///     and with every kernel on its own (coalesce = false).
/// \pre verify(program) finds nothing.
/// \return kInvalidInput if the measurement is of another Program (by fingerprint, ranks or tasks),
///     or the prediction was interrupted.
Result<Comparison> compare(const program::Program& program, const sim::Prediction& prediction,
                           const measure::Measurement& measurement, const Options& options = {});

/// Text for people. Kinds are listed down to 0.1 % of the step.
/// \param residuals  how many residuals are listed.
std::string to_text(const Comparison& comparison, std::size_t residuals = 10,
                    const Paper& paper = {});

/// A signed error, "+3.1 %"; "-" if it is unknown.
std::string percent(const std::optional<double>& part);

/// The whole comparison as JSON, schema "foreshard.comparison/1" (docs/validation.md).
std::string to_json(const Comparison& comparison);
const record::Record<Comparison>& record_of(const Comparison*);

/// A fraction as a percentage, and the error of a pair as one.
double percentage(double part);
std::optional<double> error_percentage(const Pair& pair);

/// Writes both time lines in the Trace Event Format (as sim/report/trace.h). Each rank has two
/// processes, first the measured and then the predicted one, with a thread per stream. Waiting for
/// other members of a communication is an event of its own. A name that ends in .gz is compressed.
/// \pre `compare` succeeded on the same arguments.
/// \return kIo if the file cannot be written.
Status write_trace(const std::filesystem::path& path, const program::Program& program,
                   const sim::Prediction& prediction, const measure::Measurement& measurement);

}  // namespace foreshard::compare
