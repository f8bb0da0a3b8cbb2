/// \file
/// The failures in one history of a machine, in order: those that a timeline states and those that
/// are drawn. The same seed gives the same failures whatever a run does about them, so that
/// policies are compared on the same histories.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"

namespace foreshard::elastic {

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

}  // namespace foreshard::elastic
