/// \file
/// One history of a run on a machine that fails: computing, saving, standing still, resuming, until
/// all steps are done and saved.
///
///     computes `interval`, saves, computes ...       saved: these steps can no longer be lost
///     a failure hits the run: detection, then by the policy
///       wait     until the failed nodes work again
///       replace  spare nodes take their place; without spares, like wait
///       shrink   a strategy for the remaining nodes; grows again after a checkpoint
///       reroute  the remaining replicas share the batch; grows again after a checkpoint
///     then restart (reroute: regroup) and slices, and the run continues
///
/// A run that goes back to a checkpoint computes again everything that was done since. If the
/// remaining nodes still hold all slices (Recovery::kReplicas), it repeats only the interrupted
/// step. If something fails while the run stands still, the recovery begins anew, from a
/// checkpoint. A failed node that carries no rank (a spare) does not stop the run.
///
/// A checkpoint stops the run for `blocked`; it is safe from `written` on, counted from its
/// beginning. If both are equal, the checkpoint is synchronous. The next checkpoint begins only
/// when this one is safe. There is one after the last step too.
///
/// Not modelled: failures that go unnoticed (wrong results); slow devices; steps that differ; wear
/// of nodes. Which nodes remain matters only for reroute: all other strategies are the ones for the
/// same number of nodes (Plans).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace foreshard::elastic {

// The failures in one history of a machine, in order: those that a timeline states and those that
// are drawn. The same seed gives the same failures whatever a run does about them, so that
// policies are compared on the same histories.

inline constexpr std::size_t kGiven = SIZE_MAX;  ///< The cause of a failure that was not drawn.

/// What a kind of failure does on a machine of a certain size.
struct Hazard {
  Seconds between{};       ///< Mean time between failures of all its units. Invariant: > 0.
  bool of_job = false;     ///< Whether the run itself fails, not a node.
  std::int64_t group = 1;  ///< Number of nodes of the group that each unit stands for or lies in.
  std::int64_t taken = 0;  ///< Number of nodes that are down afterwards: 0, 1, or `group`.
  Seconds repair{};
};

struct Failure {
  Seconds at{};
  std::size_t cause = kGiven;  ///< Index of the Hazard.
  bool of_job = false;
  std::int64_t node = 0;   ///< First affected node.
  std::int64_t nodes = 1;  ///< Number of affected nodes, counted from `node`.
  bool takes = false;      ///< Whether the nodes are down until `back`.
  Seconds back{};          ///< Time of the repair; kNever: the nodes are never repaired.
};

/// A stream of failures in order of time; it never ends if there is a hazard.
class Failures {
 public:
  /// \param nodes  the number of nodes of the machine; units of hazards are spread evenly over
  ///     them.
  Failures(const std::vector<Hazard>& hazards, std::int64_t nodes, std::uint64_t seed);
  /// The next failure; nothing if there is no hazard.
  std::optional<Failure> next();

 private:
  double draw();  // (0, 1]

  const std::vector<Hazard>& hazards_;
  std::int64_t nodes_;
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
  double rate_ = 0;  // sum over all hazards, per second
  Seconds now_;
};

enum class Policy : std::uint8_t { kReplace, kShrink, kWait, kReroute };
/// Source of the parameters and the optimizer state after a failure.
enum class Recovery : std::uint8_t { kCheckpoint, kReplicas };

/// How a run uses the machine: on how many nodes, and without how many of its replicas.
struct Arrangement {
  std::int64_t nodes = 0;
  std::int64_t replicas_lost = 0;  ///< Replicas left out by reroute.
  auto operator<=>(const Arrangement&) const = default;
};

/// Slices that move between devices, or are read from a checkpoint.
struct StateTransfer {
  Seconds time{};
  Bytes bytes{};
  bool from_checkpoint = false;
};

/// Step times and shifts for arrangements. Repeated questions are answered from a cache.
class Plans {
 public:
  virtual ~Plans() = default;
  /// Time of a step; nothing if no strategy fits.
  virtual Result<std::optional<Seconds>> step_of(Arrangement arrangement) = 0;
  /// \param failed  how many of the nodes of `from` no longer hold anything: the last ones.
  /// \param recovery  kCheckpoint: everything is read from a checkpoint.
  virtual Result<StateTransfer> shift(Arrangement from, Arrangement to, std::int64_t failed,
                                      Recovery recovery) = 0;
  /// Number of replicas that the run loses if these nodes are down; nothing if that is unknown.
  virtual Result<std::optional<std::int64_t>> replicas_on(const std::vector<bool>& down) = 0;
};

/// Nodes that are added for good.
struct Addition {
  Seconds at{};
  std::int64_t nodes = 0;
};

struct Rules {
  Policy policy = Policy::kWait;
  Recovery recovery = Recovery::kCheckpoint;
  double steps = 0;        ///< Steps of the whole run. Invariant: whole, > 0.
  std::int64_t nodes = 0;  ///< Number of nodes at the start.
  std::int64_t spares = 0;
  Seconds detection{};
  Seconds restart{};
  Seconds regroup{};  ///< Replaces `restart` when replicas are left out or come back.
  /// Time between checkpoints; rounded to whole steps, at least one, and never shorter than the
  /// previous checkpoint needs to be safe.
  Seconds interval{};
  Seconds blocked{};
  Seconds written{};                  ///< Invariant: >= blocked.
  std::vector<Addition> additions{};  ///< Ascending.
  std::vector<Failure> given{};       ///< Ascending.
};

/// Where the time went. The parts sum to `wall`.
struct Parts {
  Seconds useful{};    ///< Steps at the speed of the full machine.
  Seconds slowdown{};  ///< Additional time of the same steps on fewer nodes.
  Seconds lost{};      ///< Work that was lost and is computed again.
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
  /// Whether the run ended; otherwise it was given up after kLongest times the run without
  /// failures.
  bool finished = false;
  Seconds wall{};
  Parts parts{};
  std::int64_t failures = 0;     ///< Failures of the machine until the end.
  std::int64_t interrupted = 0;  ///< Number of failures that stopped the run.
  std::int64_t checkpoints = 0;
  std::int64_t moves = 0;  ///< Number of shifts, including those from checkpoints.
  Bytes moved{};
  std::map<std::size_t, std::int64_t> by_cause{};  ///< Cause -> number of interruptions.
  std::int64_t fewest_nodes = 0;  ///< Smallest number of nodes that the run was on.
};

inline constexpr double kLongest = 100;

/// \param drawn  the failures in addition to Rules::given.
/// \return The errors of `plans`.
Result<History> history_of(const Rules& rules, Plans& plans, const Failures& drawn);

// The time between two checkpoints, and the resulting time of a run, in closed form.
//
//     Young     tau = sqrt(2 delta M)
//     Daly      tau = sqrt(2 delta M) [1 + sqrt(x)/3 + x/9] - delta,  x = delta / (2 M);
//               tau = M if x >= 1
//     run       T = M exp(R/M) (exp((tau + delta)/M) - 1) T_s / tau
//
// delta: time for which a checkpoint keeps the run from computing; M: mean time between
// interruptions; R: time of a restart, which may itself be interrupted; T_s: time of the run
// without interruptions and checkpoints. Interruptions are exponential.
// Source: Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9),
// 1974; Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps",
// FGCS 22(3), 2006.

/// \pre Both are > 0.
Seconds young_interval(Seconds checkpoint, Seconds between);
Seconds daly_interval(Seconds checkpoint, Seconds between);

/// The mean time of a run.
/// \pre interval, between > 0
Seconds expected_time(Seconds work, Seconds interval, Seconds checkpoint, Seconds restart,
                      Seconds between);

}  // namespace foreshard::elastic
