/// \file
/// Times of kernels and of communication over groups of ranks, for estimates.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
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

class RankDevices {
 public:
  /// Rank r runs on device `devices`[r] of `cluster`, which must outlive it.
  /// \param margin  the part of each device's memory that is kept free.
  /// \param clocked  the devices of whose slowest the cluster has the clocks (clock_spread.h);
  ///     empty: its clocks are those of any devices.
  RankDevices(const ClusterView& cluster, std::vector<std::int32_t> devices, double margin = 0,
              std::span<const std::int32_t> clocked = {});

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
  /// A job on the first `ranks` devices alone runs at the clocks of the slowest of them. No kernel
  /// then takes less than this share (at most 1) of its time at the cluster's clocks.
  double clock_ratio(std::int64_t ranks);
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
  std::vector<std::int64_t> clocked_;                 // device type -> devices in `clocked`
  std::map<std::int64_t, double> clock_ratio_;        // ranks -> clock_ratio
  std::vector<std::pair<Kinds, std::int32_t>> sets_;  // sets and their ordinals
  // Key: stride and size of the pipeline's axis, and the number of ranks.
  std::map<std::array<std::int64_t, 3>, std::vector<std::int32_t>> of_stages_;
};

/// The time of what cannot be done.
inline constexpr Seconds kNever = Seconds::from_base(std::numeric_limits<double>::infinity());

/// A mesh axis: `size` ranks, `stride` apart.
struct StridedAxis {
  std::int64_t stride = 1;
  std::int64_t size = 1;
  auto operator<=>(const StridedAxis&) const = default;
};
StridedAxis strided_axis(const std::vector<MeshAxis>& mesh, Axis axis);

/// Groups of ranks along one mesh axis or several.
class RankGroups {
 public:
  /// \param axes  ascending.
  RankGroups(const std::vector<MeshAxis>& mesh, const std::vector<Axis>& axes);

  std::int64_t size() const { return size_; }  ///< Ranks per group.
  /// The pipeline's axis where the groups do not lie along it; else a line of size 1. Also of size
  /// 1 for groups of single ranks, whose copies use the same host whatever their stage is.
  const StridedAxis& stages() const { return stages_; }
  /// The i-th rank of a group; groups are numbered by their first rank.
  std::int64_t rank(std::int64_t group, std::int64_t i) const;
  bool operator<(const RankGroups& other) const { return lines_ < other.lines_; }

 private:
  std::vector<StridedAxis> lines_;  // ascending; adjacent axes are merged
  StridedAxis stages_{};
  std::int64_t size_ = 1;
};

inline constexpr std::int32_t kAnyStage = -1;

/// Multiprocessors of a device that communication takes from kernels beside it.
struct SmContention {
  /// How much longer at least a kernel takes that runs all that time: share x time.
  Seconds delay{};
  double share = 0;  ///< Upper bound of the share of the multiprocessors.
};

/// Times over several groups or kinds of device: the slowest and the fastest.
struct TimeRange {
  Seconds slowest;
  Seconds fastest;
  SmContention held{};
};

/// The least time of communication, and what it holds meanwhile.
struct LeastTime {
  Seconds time;
  SmContention held{};
};

/// Asks a CostModel and caches its answers. Use one object per thread.
class CostCache {
 public:
  /// Both must outlive it.
  CostCache(const CostModel& cost, const RankDevices& places) : cost_(cost), places_(places) {}

  /// Time of a kernel on one kind of device (an index into RankDevices::kinds).
  Seconds kernel(const Kernel& kernel, std::int32_t kind);
  /// Time of a kernel on the slowest and on the fastest of these kinds.
  TimeRange kernel(const Kernel& kernel, const Kinds& kinds);
  /// Times over the groups of the first `ranks` ranks whose devices are all of these kinds. The
  /// slowest time includes that all groups of a stage run the operation at once and share links.
  /// \param stage  only groups of that stage, whatever their devices; kAnyStage: groups of all
  ///     stages.
  Result<TimeRange> collective(program::CollectiveKind kind, Bytes bytes, const RankGroups& groups,
                               std::int64_t ranks, const Kinds& kinds,
                               std::int32_t stage = kAnyStage);
  /// The time of the slower one of the first and the last group of those ranks, whatever their
  /// devices; also with shared links.
  Result<Seconds> slower_end(program::CollectiveKind kind, Bytes bytes, const RankGroups& groups,
                             std::int64_t ranks);
  /// The least time of the first group of those ranks; where devices are of several kinds, the
  /// least time of any of their groups.
  Result<LeastTime> least(program::CollectiveKind kind, Bytes bytes, const RankGroups& groups,
                          std::int64_t ranks);
  /// Time of an operation between the two ends of the line's first group, with shared links.
  Result<Seconds> ends(program::CollectiveKind kind, Bytes bytes, StridedAxis line,
                       std::int64_t ranks);

  /// A number for the groups that collective() would look at; equal numbers mean equivalent groups.
  std::int32_t group_kinds(const RankGroups& groups, std::int64_t ranks, const Kinds& kinds,
                           std::int32_t stage = kAnyStage);
  /// The kind of a transfer between two ranks of the line's first group, given by their positions
  /// in it.
  std::int32_t transfer_kind(StridedAxis line, std::int64_t from, std::int64_t to);
  /// Time of a transfer of that kind, on idle links.
  Result<Seconds> transfer(Bytes bytes, std::int32_t kind);

  /// Distinct sets of concurrent groups: groups that communicate at once (CostModel::crowd_kind).
  using ConcurrentKinds = std::vector<std::int32_t>;
  /// The sets of concurrent groups of the same transfer in all groups of the line at once.
  const ConcurrentKinds& concurrent_transfers(StridedAxis line, std::int64_t from, std::int64_t to,
                                              std::int64_t ranks);
  /// The time that sharing links adds, in the set of concurrent groups where it adds most.
  Result<Seconds> sharing(program::CollectiveKind kind, Bytes bytes,
                          const ConcurrentKinds& concurrent);

 private:
  using GroupKind = std::int32_t;  // CostModel::group_kind

  std::vector<DeviceId> devices(const RankGroups& groups, std::int64_t index) const;
  GroupKind met(const std::vector<DeviceId>& devices);
  // The distinct kinds of the groups whose devices are all of these kinds.
  const std::vector<GroupKind>& kinds_of(const RankGroups& groups, std::int64_t ranks,
                                         const Kinds& kinds);
  Result<Seconds> operation(program::CollectiveKind kind, Bytes bytes, GroupKind group);
  Result<SmContention> held(program::CollectiveKind kind, Bytes bytes, GroupKind group);
  // The first and the last of those ranks' groups.
  std::pair<GroupKind, GroupKind> ends_of(const RankGroups& groups, std::int64_t ranks);
  // The groups of a stage: their distinct kinds and sets of concurrent groups.
  struct StageGroups {
    std::vector<GroupKind> kinds{};
    ConcurrentKinds concurrent{};
    auto operator<=>(const StageGroups&) const = default;
  };
  const std::vector<StageGroups>& by_stage(const RankGroups& groups, std::int64_t ranks);
  // The sets of concurrent groups of the stages whose devices are all of these kinds (empty: of all
  // stages).
  const ConcurrentKinds& concurrent_of(const RankGroups& groups, std::int64_t ranks,
                                       const Kinds& kinds);
  void add_concurrent(const std::vector<std::vector<DeviceId>>& groups,
                      std::set<std::int32_t>& concurrent);

  const CostModel& cost_;
  const RankDevices& places_;
  std::map<std::pair<Kernel, std::int32_t>, Seconds> kernels_;
  std::map<GroupKind, std::vector<DeviceId>> first_of_kind_;
  std::map<std::tuple<RankGroups, std::int64_t, Kinds>, std::vector<GroupKind>> kinds_of_;
  std::map<StageGroups, std::int32_t> sets_;
  std::map<std::tuple<RankGroups, StridedAxis, std::int64_t>, std::vector<StageGroups>> by_stage_;
  std::map<std::tuple<RankGroups, StridedAxis, std::int64_t, Kinds>, ConcurrentKinds> concurrent_;
  std::map<std::tuple<StridedAxis, std::int64_t, std::int64_t, std::int64_t>, ConcurrentKinds>
      concurrent_transfers_;
  std::map<std::tuple<program::CollectiveKind, double, std::int32_t>, Seconds> sharings_;
  std::map<std::tuple<program::CollectiveKind, double, GroupKind>, Seconds> operations_;
  std::map<std::tuple<program::CollectiveKind, double, GroupKind>, SmContention> held_;
  std::map<std::tuple<RankGroups, std::int64_t>, std::pair<GroupKind, GroupKind>> ends_;
  std::map<std::tuple<StridedAxis, std::int64_t, std::int64_t>, GroupKind> transfers_;
};

/// The groups of a communication task, in a block that lies on `mesh`.
RankGroups groups_of(const program::Communication& what, const std::vector<MeshAxis>& mesh);
std::int64_t ranks_of(const std::vector<MeshAxis>& mesh);

/// The least time of the communication of `block` on one stream, where its tasks run one after
/// another: CostCache::least.
Result<LeastTime> chain_least(const program::Block& block, lower::StreamIndex stream,
                              const std::vector<MeshAxis>& mesh, CostCache& times);

}  // namespace foreshard::search
