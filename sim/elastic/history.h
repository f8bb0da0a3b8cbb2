/// \file
/// One history of a run on a machine that fails: computing, saving, standing still, going on, until
/// all steps are done and saved.
///
///     computes `interval`, saves, computes ...       saved: nothing of it is lost any more
///     a failure hits the run: detection, then by the policy
///       wait     until the nodes that failed work again
///       replace  spare nodes take their place; without one, as wait
///       shrink   the strategy for the nodes that are left; grows again behind a checkpoint
///       reroute  the replicas that are left share the batch; likewise
///     then restart (reroute: regroup) and slices, and the run goes on
///
/// A run that goes back to a checkpoint computes again all that was done since; where all slices
/// are still held by somebody (Recovery::kReplicas), only the step that was interrupted. A failure
/// while the run stands still begins the standing still anew, from a checkpoint. What fails while
/// it carries no rank (a spare) does not stop the run.
///
/// A checkpoint stops the run for `blocked`; from `written` on, counted from its beginning, it is
/// safe. Equal: synchronous. The next one begins when it is safe, not before. There is one behind
/// the last step too.
///
/// Not modelled: a failure that is not noticed as one (wrong results); slow devices; steps that
/// differ; that nodes wear. Which of the nodes are left matters to reroute alone: other strategies
/// are those for as many nodes (Plans).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "sim/elastic/failures.h"

namespace foreshard::elastic {

enum class Policy : std::uint8_t { kReplace, kShrink, kWait, kReroute };
/// From where a run that failed takes its parameters and optimizer state.
enum class Recovery : std::uint8_t { kCheckpoint, kReplicas };

/// How a run lies on the machine: on so many nodes, with so many of its replicas.
struct Arrangement {
  std::int64_t nodes = 0;
  std::int64_t replicas_lost = 0;  ///< Of reroute.
  auto operator<=>(const Arrangement&) const = default;
};

/// Slices that move, or are read from a checkpoint.
struct Shift {
  Seconds time{};
  Bytes bytes{};
  bool from_checkpoint = false;
};

/// What the strategy of an arrangement takes. Asked again and again for the same: remembers.
class Plans {
 public:
  virtual ~Plans() = default;
  /// Time of a step; nothing where no strategy fits.
  virtual Result<std::optional<Seconds>> step_of(Arrangement arrangement) = 0;
  /// \param failed  of the nodes of `from`, those that hold nothing any more: its last ones.
  /// \param recovery  kCheckpoint: all is read from a checkpoint.
  virtual Result<Shift> shift(Arrangement from, Arrangement to, std::int64_t failed,
                              Recovery recovery) = 0;
  /// How many replicas the run loses with these nodes of it; nothing where it cannot be told.
  virtual Result<std::optional<std::int64_t>> replicas_on(const std::vector<bool>& down) = 0;
};

/// Nodes that come to stay.
struct Addition {
  Seconds at{};
  std::int64_t nodes = 0;
};

struct Rules {
  Policy policy = Policy::kWait;
  Recovery recovery = Recovery::kCheckpoint;
  double steps = 0;        ///< Of the whole run. Invariant: whole, > 0.
  std::int64_t nodes = 0;  ///< That the run begins on.
  std::int64_t spares = 0;
  Seconds detection{};
  Seconds restart{};
  Seconds regroup{};  ///< In place of `restart`, where replicas are left out or come back.
  /// Between checkpoints; rounded to whole steps, at least one, and never less than the one before
  /// needs to be safe.
  Seconds interval{};
  Seconds blocked{};
  Seconds written{};                  ///< Invariant: >= blocked.
  std::vector<Addition> additions{};  ///< Ascending.
  std::vector<Failure> given{};       ///< Ascending.
};

/// Where the time went. The parts sum to `wall`.
struct Parts {
  Seconds useful{};    ///< Steps at the speed of the whole run.
  Seconds slowdown{};  ///< What the same steps took longer, on fewer nodes.
  Seconds lost{};      ///< Computed again.
  Seconds saving{};
  Seconds detection{};
  Seconds restart{};
  Seconds slices{};
  Seconds waiting{};

  Seconds total() const {
    return useful + slowdown + lost + saving + detection + restart + slices + waiting;
  }
};

struct History {
  bool finished = false;  ///< Else it was given up after kLongest times the run without failures.
  Seconds wall{};
  Parts parts{};
  std::int64_t failures = 0;     ///< Of the machine, until the end.
  std::int64_t interrupted = 0;  ///< Times that the run stood still for one.
  std::int64_t checkpoints = 0;
  std::int64_t moves = 0;  ///< Shifts, those from checkpoints too.
  Bytes moved{};
  std::map<std::size_t, std::int64_t> by_cause{};  ///< Interruptions.
  std::int64_t fewest_nodes = 0;                   ///< That the run was on.
};

inline constexpr double kLongest = 100;

/// \param drawn  the failures that are not given.
/// \return the errors of `plans`.
Result<History> history_of(const Rules& rules, Plans& plans, const Failures& drawn);

}  // namespace foreshard::elastic
