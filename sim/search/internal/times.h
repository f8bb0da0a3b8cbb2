/// \file
/// Times of kernels and of communication over groups of ranks, for estimates.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"

#include "strategies/cost/cost_model.h"
#include "strategies/program/lower/block.h"
#include "topology/cluster_view.h"

namespace foreshard::search {

// The devices that the ranks of a strategy run on: kinds of device, which differ in type, speed or
// host, and the kinds that each pipeline stage has. A cluster of equal nodes has one kind.

/// Devices of one kind take the same time for a kernel and its launch, and have the same memory.
struct DeviceKind {
  DeviceTypeId type;
  double speed = 1;  ///< Same as Device::speed.
  Bytes memory{};
  Host host{};
};
/// Indices of kinds, ascending.
using Kinds = std::vector<std::int32_t>;

class Places {
 public:
  /// Rank r runs on device `devices`[r] of `cluster`, which must outlive it.
  /// \param margin  the part of each device's memory that is kept free.
  Places(const ClusterView& cluster, std::vector<std::int32_t> devices, double margin = 0);

  DeviceId device(std::int64_t rank) const {
    return DeviceId{devices_[static_cast<std::size_t>(rank)]};
  }
  std::int32_t kind_of(std::int64_t rank) const {
    return kind_of_rank_[static_cast<std::size_t>(rank)];
  }
  const std::vector<DeviceKind>& kinds() const { return kinds_; }
  const ClusterView& cluster() const { return cluster_; }

  /// stage -> number of the set of its devices' kinds (argument of `set`), where ranks are numbered
  /// as in `mesh`. Cost: O(ranks) the first time that a mesh is asked for.
  const std::vector<std::int32_t>& of_stages(const std::vector<MeshAxis>& mesh);
  const Kinds& set(std::int32_t number) const {
    return sets_[static_cast<std::size_t>(number)].first;
  }
  /// Time in which the slowest host of a set launches a kernel (Host::launching).
  Seconds launching(std::int32_t number, Seconds host_time) const;
  /// A second number for the same set of kinds, for stages whose groups communicate differently
  /// from other stages with that set. `ordinal`: 0 for the set itself, else the n-th such variant.
  std::int32_t variant(std::int32_t number, std::int32_t ordinal);

 private:
  std::int32_t number_of(Kinds kinds, std::int32_t ordinal);

  const ClusterView& cluster_;
  std::vector<std::int32_t> devices_;
  std::vector<std::int32_t> kind_of_rank_;
  std::vector<DeviceKind> kinds_;
  std::vector<std::pair<Kinds, std::int32_t>> sets_;  // sets and their ordinals
  // Key: stride and size of the pipeline's axis, and the number of ranks.
  std::map<std::array<std::int64_t, 3>, std::vector<std::int32_t>> of_stages_;
};

/// The time of what cannot be done.
inline constexpr Seconds kNever = Seconds::from_base(std::numeric_limits<double>::infinity());

/// A mesh axis: `size` ranks, `stride` apart.
struct Line {
  std::int64_t stride = 1;
  std::int64_t size = 1;
  auto operator<=>(const Line&) const = default;
};
Line line_of(const std::vector<MeshAxis>& mesh, Axis axis);

/// Groups of ranks along one mesh axis or several.
class Groups {
 public:
  /// \param axes  ascending.
  Groups(const std::vector<MeshAxis>& mesh, const std::vector<Axis>& axes);

  std::int64_t size() const { return size_; }  ///< Ranks per group.
  /// The pipeline's axis where the groups do not lie along it; else a line of size 1. Also of size
  /// 1 for groups of single ranks, whose copies use the same host whatever their stage is.
  const Line& stages() const { return stages_; }
  /// The i-th rank of a group; groups are numbered by their first rank.
  std::int64_t rank(std::int64_t group, std::int64_t i) const;
  bool operator<(const Groups& other) const { return lines_ < other.lines_; }

 private:
  std::vector<Line> lines_;  // ascending; adjacent axes are merged
  Line stages_{};
  std::int64_t size_ = 1;
};

inline constexpr std::int32_t kAnyStage = -1;

/// Multiprocessors of a device that communication takes from kernels beside it.
struct Held {
  /// How much longer at least a kernel takes that runs all that time: share x time.
  Seconds delay{};
  double share = 0;  ///< Upper bound of the share of the multiprocessors.
};

/// Times over several groups or kinds of device: the slowest and the fastest.
struct Spread {
  Seconds slowest;
  Seconds fastest;
  Held held{};
};

/// The least time of communication, and what it holds meanwhile.
struct LeastTime {
  Seconds time;
  Held held{};
};

/// Asks a CostModel and caches its answers. Use one object per thread.
class Times {
 public:
  /// Both must outlive it.
  Times(const CostModel& cost, const Places& places) : cost_(cost), places_(places) {}

  /// Time of a kernel on one kind of device (an index into Places::kinds).
  Seconds kernel(const Kernel& kernel, std::int32_t kind);
  /// Time of a kernel on the slowest and on the fastest of these kinds.
  Spread kernel(const Kernel& kernel, const Kinds& kinds);
  /// Times over the groups of the first `ranks` ranks whose devices are all of these kinds. The
  /// slowest time includes that all groups of a stage run the operation at once and share links.
  /// \param stage  only groups of that stage, whatever their devices; kAnyStage: groups of all
  ///     stages.
  Result<Spread> collective(program::CollectiveKind kind, Bytes bytes, const Groups& groups,
                            std::int64_t ranks, const Kinds& kinds, std::int32_t stage = kAnyStage);
  /// The time of the slower one of the first and the last group of those ranks, whatever their
  /// devices; also with shared links.
  Result<Seconds> slower_end(program::CollectiveKind kind, Bytes bytes, const Groups& groups,
                             std::int64_t ranks);
  /// The least time of the first group of those ranks; where devices are of several kinds, the
  /// least time of any of their groups.
  Result<LeastTime> least(program::CollectiveKind kind, Bytes bytes, const Groups& groups,
                          std::int64_t ranks);
  /// Time of an operation between the two ends of the line's first group, with shared links.
  Result<Seconds> ends(program::CollectiveKind kind, Bytes bytes, Line line, std::int64_t ranks);

  /// A number for the groups that collective() would look at; equal numbers mean equivalent groups.
  std::int32_t group_kinds(const Groups& groups, std::int64_t ranks, const Kinds& kinds,
                           std::int32_t stage = kAnyStage);
  /// The kind of a transfer between two ranks of the line's first group, given by their positions
  /// in it.
  std::int32_t transfer_kind(Line line, std::int64_t from, std::int64_t to);
  /// Time of a transfer of that kind, on idle links.
  Result<Seconds> transfer(Bytes bytes, std::int32_t kind);

  /// Distinct crowds: groups that communicate at once (CostModel::crowd_kind).
  using Crowds = std::vector<std::int32_t>;
  /// The crowds of the same transfer in all groups of the line at once.
  const Crowds& transfer_crowds(Line line, std::int64_t from, std::int64_t to, std::int64_t ranks);
  /// The time that sharing links adds, in the crowd where it adds most.
  Result<Seconds> sharing(program::CollectiveKind kind, Bytes bytes, const Crowds& crowds);

 private:
  using GroupKind = std::int32_t;  // CostModel::group_kind

  std::vector<DeviceId> devices(const Groups& groups, std::int64_t index) const;
  GroupKind met(const std::vector<DeviceId>& devices);
  // The distinct kinds of the groups whose devices are all of these kinds.
  const std::vector<GroupKind>& kinds_of(const Groups& groups, std::int64_t ranks,
                                         const Kinds& kinds);
  Result<Seconds> operation(program::CollectiveKind kind, Bytes bytes, GroupKind group);
  Result<Held> held(program::CollectiveKind kind, Bytes bytes, GroupKind group);
  // The first and the last of those ranks' groups.
  std::pair<GroupKind, GroupKind> ends_of(const Groups& groups, std::int64_t ranks);
  // The groups of a stage: their distinct kinds and crowds.
  struct Alike {
    std::vector<GroupKind> kinds{};
    Crowds crowds{};
    auto operator<=>(const Alike&) const = default;
  };
  const std::vector<Alike>& by_stage(const Groups& groups, std::int64_t ranks);
  // The crowds of the stages whose devices are all of these kinds (empty: of all stages).
  const Crowds& crowds_of(const Groups& groups, std::int64_t ranks, const Kinds& kinds);
  void add_crowds(const std::vector<std::vector<DeviceId>>& groups, std::set<std::int32_t>& crowds);

  const CostModel& cost_;
  const Places& places_;
  std::map<std::pair<Kernel, std::int32_t>, Seconds> kernels_;
  std::map<GroupKind, std::vector<DeviceId>> first_of_kind_;
  std::map<std::tuple<Groups, std::int64_t, Kinds>, std::vector<GroupKind>> kinds_of_;
  std::map<Alike, std::int32_t> sets_;
  std::map<std::tuple<Groups, Line, std::int64_t>, std::vector<Alike>> by_stage_;
  std::map<std::tuple<Groups, Line, std::int64_t, Kinds>, Crowds> crowds_;
  std::map<std::tuple<Line, std::int64_t, std::int64_t, std::int64_t>, Crowds> transfer_crowds_;
  std::map<std::tuple<program::CollectiveKind, double, std::int32_t>, Seconds> sharings_;
  std::map<std::tuple<program::CollectiveKind, double, GroupKind>, Seconds> operations_;
  std::map<std::tuple<program::CollectiveKind, double, GroupKind>, Held> held_;
  std::map<std::tuple<Groups, std::int64_t>, std::pair<GroupKind, GroupKind>> ends_;
  std::map<std::tuple<Line, std::int64_t, std::int64_t>, GroupKind> transfers_;
};

/// The groups of a communication task, in a block that lies on `mesh`.
Groups groups_of(const program::Communication& what, const std::vector<MeshAxis>& mesh);
std::int64_t ranks_of(const std::vector<MeshAxis>& mesh);

/// The least time of the communication of `block`, whose tasks run one after another: Times::least.
Result<LeastTime> chain_least(const program::Block& block, const std::vector<MeshAxis>& mesh,
                              Times& times);
/// The time of the same communication: Times::slower_end.
Result<Seconds> chain_time(const program::Block& block, const std::vector<MeshAxis>& mesh,
                           Times& times);

}  // namespace foreshard::search
