/// \file
/// Prediction against measurement: `foreshard compare`.
///
/// Both know when each instance of each rank was reached, began and ended. Sums of durations alone
/// do not explain a step: what runs beside something else costs nothing. So the time of each rank
/// is *booked*, in both, each instant once, under the first of
///
///     a kernel - a communication under way - waiting for a member of one - the host - nothing
///
/// up to the end of the step. Booked times of all kinds add up to the step; their means over ranks
/// do so too, and
///
///     sum over kinds (predicted booked - measured booked)  =  predicted step - measured step
///
/// attributes the step's error exactly to kinds of tasks (`share_of_error`). Medians of
/// tasks need not add up to the median of steps: what is missing, or too much, is booked as
/// "between medians".
///
/// A communication has the duration  latest finish - latest start  over its members, of what was
/// measured per repeat (measure::TaskTimes::lasted; of files without it from medians). Members that
/// were there before wait, which is booked apart.
///
/// **Turns.** Where a communication holds all of a device (a CPU core, which does one thing at a
/// time), a predicted kernel stands still while one is under way. Its predicted time is then what
/// is left of it, and the prediction is booked with communications before kernels.
///
/// Of one rank that was replayed alone (measure::Mode::kOneRank) the results of communications come
/// when the simulator says, so they are compared by no duration: their booked time is waiting, and
/// `slack` has the result.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
  /// predicted / measured - 1; nothing where nothing was measured.
  std::optional<double> error() const;
};

/// What a time is booked under.
enum class Kind : std::uint8_t {
  kKernel,
  kCommunication,
  kWaiting,         ///< For other members of a communication.
  kHost,            ///< Sync and HostWork.
  kIdle,            ///< Nothing runs: a pipeline's bubble, launches that come late.
  kBetweenMedians,  ///< See above; measured only.
};

/// All tasks of one kind. Times are means over ranks of a rank's sum, `each` is per instance.
struct Row {
  Kind kind = Kind::kKernel;
  /// "gemm", "attention_fwd", "adam"; "all_reduce 12.0 MiB, 2 ranks"; "waiting for other ranks".
  std::string name{};
  std::int64_t count = 0;  ///< Instances of a step, over all ranks.
  Pair time{};
  Pair each{};
  /// Mean width of the instances' 10 % to 90 % intervals over their medians.
  double spread = 0;
  Pair booked{};
  std::optional<double> share_of_step{};   ///< measured booked / measured step
  std::optional<double> share_of_error{};  ///< See above; nothing where the step has no error.
};

struct StreamRow {
  std::string name{};
  Pair busy{};  ///< Mean over ranks of the time in which something ran on it, waiting left out.
};

struct RankRow {
  std::int32_t rank = 0;
  Pair finish{};
  Bytes predicted_peak{};
  Bytes measured_peak{};
};

/// Means over ranks.
struct Overlap {
  Pair computing{};
  Pair communicating{};           ///< Something under way, waiting left out.
  Pair hidden{};                  ///< Of that, beside a kernel.
  std::array<Pair, 5> exposed{};  ///< The rest, by program::Purpose: booked.
};

/// kOneRank: results of communications against the instants at which the rank needed them.
struct Slack {
  std::int64_t communications = 0;
  std::int64_t late = 0;  ///< The rank waited.
  Seconds waited{};       ///< In all.
  Seconds least{};        ///< Slack; negative: the longest wait.
};

struct Comparison {
  std::string program{};
  std::string cluster{};
  std::string fingerprint{};
  std::string backend{};
  std::string date{};
  measure::Mode mode = measure::Mode::kWhole;
  std::int64_t ranks = 0;  ///< Compared.
  std::int64_t repeats = 0;
  Pair step{};
  Seconds low{};                 ///< Of the measured steps: 10th percentile...
  Seconds high{};                ///< ... and 90th.
  double spread = 0;             ///< (high - low) / median
  std::vector<Row> kinds{};      ///< By measured booked time.
  std::vector<Row> residuals{};  ///< By distinct task, by |predicted booked - measured booked|.
  std::vector<StreamRow> streams{};
  Overlap overlap{};
  std::vector<RankRow> per_rank{};
  std::optional<Slack> slack{};
  std::vector<std::string> remarks{};
};

struct Options {
  bool turns = false;  ///< See above.
};
/// What the devices of `cluster` call for: turns, if each has one multiprocessor.
Options options_for(const ClusterView& cluster);

/// \param prediction  of this Program, with its time line (SimulateOptions::timeline), and every
///     kernel for itself (coalesce = false).
/// \pre verify(program) finds nothing.
/// \return kInvalidInput if the measurement is not one of this Program (fingerprint, ranks, tasks),
///     or the prediction was interrupted.
Result<Comparison> compare(const program::Program& program, const sim::Prediction& prediction,
                           const measure::Measurement& measurement, const Options& options = {});

}  // namespace foreshard::compare
