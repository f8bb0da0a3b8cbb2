/// \file
/// Times of lowered blocks, for estimates: what one pass through a block takes, from its tasks and
/// their dependencies alone.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "base/result.h"

#include "strategies/cost/cost_model.h"
#include "strategies/program/lower/block.h"

namespace foreshard::search {

/// Groups of ranks along one mesh axis: n ranks, `stride` apart.
struct Line {
  std::int64_t stride = 1;
  std::int64_t size = 1;
  auto operator<=>(const Line&) const = default;
};
/// The line of mesh axis `axis`.
Line line_of(const std::vector<MeshAxis>& mesh, Axis axis);

/// Times over the groups of a line: of the slowest and of the fastest one.
struct Spread {
  Seconds slowest;
  Seconds fastest;
};

/// Asks a CostModel and remembers. Rank r runs on device r. One object for each thread.
class Times {
 public:
  Times(const CostModel& cost, const ClusterView& cluster) : cost_(cost), cluster_(cluster) {}

  /// On the slowest and on the fastest type of device.
  Spread kernel(const Kernel& kernel);
  /// Of all groups of the line, or of the first and the last one only.
  Result<Spread> collective(program::CollectiveKind kind, Bytes bytes, Line line, bool all);
  /// Of the two ends of the first group of the line.
  Result<Seconds> ends(program::CollectiveKind kind, Bytes bytes, Line line) const;
  /// The slowest transfer between neighbours of the first group of the line.
  Result<Seconds> transfer(Bytes bytes, Line line);

 private:
  const CostModel& cost_;
  const ClusterView& cluster_;
  std::map<Kernel, Spread> kernels_;
  std::map<std::tuple<program::CollectiveKind, double, Line, bool>, Spread> collectives_;
  std::map<std::pair<double, Line>, Seconds> transfers_;
};

/// One pass through a block, all its streams idle before.
struct PassTime {
  Seconds first;  ///< From its first task's start to its last one's end.
  Seconds next;   ///< What each further pass right behind it adds.
  /// The least time from its first to its last kernel: with the fastest devices and groups, and
  /// nothing else on the links. Never more than any engine finds.
  Seconds bound;
  std::int64_t launches = 0;

  Seconds times(std::int64_t n) const {
    return n == 0 ? Seconds{} : first + static_cast<double>(n - 1) * next;
  }
};

Result<PassTime> pass_time(const program::Block& block, const std::vector<MeshAxis>& mesh,
                           Times& times);

/// The tasks of `block`, which are one after another: its communication.
Result<Seconds> chain_time(const program::Block& block, const std::vector<MeshAxis>& mesh,
                           Times& times);

struct PassTimes {
  PassTime forward;
  PassTime backward;
};
struct ModelTimes {
  PassTimes embedding;
  PassTimes layer;
  PassTimes head;
};
Result<ModelTimes> model_times(const lower::LoweredModel& model, Times& times);

}  // namespace foreshard::search
