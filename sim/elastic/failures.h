/// \file
/// The failures of one history of a machine, in order: those that a time line gives, and those that
/// are drawn. The same seed gives the same failures whatever a run does about them, so that
/// policies are compared on the same histories.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"

namespace foreshard::elastic {

inline constexpr std::size_t kGiven = SIZE_MAX;  ///< The cause of a failure that was not drawn.

/// What a kind of failure does, on a machine of a certain size.
struct Hazard {
  Seconds between{};       ///< Mean time between failures of all its units. Invariant: > 0.
  bool of_job = false;     ///< Of the run itself, not of any node.
  std::int64_t group = 1;  ///< Nodes that each unit stands for or lies in.
  std::int64_t taken = 0;  ///< Nodes that do not work afterwards: none, 1, or `group`.
  Seconds repair{};
};

struct Failure {
  Seconds at{};
  std::size_t cause = kGiven;  ///< Index of the Hazard.
  bool of_job = false;
  std::int64_t node = 0;   ///< The first that it concerns.
  std::int64_t nodes = 1;  ///< That it concerns, from that one on.
  bool takes = false;      ///< They do not work before `back`.
  Seconds back{};          ///< kNever: they are never repaired.
};

/// A stream that never ends, by rising time, where there is a hazard.
class Failures {
 public:
  /// \param nodes  of the machine; units of hazards lie evenly over them.
  Failures(const std::vector<Hazard>& hazards, std::int64_t nodes, std::uint64_t seed);
  /// The next one; nothing where there is no hazard.
  std::optional<Failure> next();

 private:
  double draw();  // (0, 1]

  const std::vector<Hazard>& hazards_;
  std::int64_t nodes_;
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
  double rate_ = 0;  // of all hazards, per second
  Seconds now_;
};

}  // namespace foreshard::elastic
