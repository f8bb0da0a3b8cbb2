/// \file
/// Times of kernels and of communication over groups of ranks, for estimates.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "base/result.h"

#include "sim/search/internal/places.h"
#include "strategies/cost/cost_model.h"
#include "strategies/program/lower/block.h"

namespace foreshard::search {

/// What cannot be done takes so long.
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

  std::int64_t size() const { return size_; }  ///< Ranks of a group.
  /// The pipeline's axis, where it is none of the groups': else one of size 1, as of single ranks,
  /// which use one host whatever their stage is.
  const Line& stages() const { return stages_; }
  /// The i-th rank of a group; groups are numbered by their first rank.
  std::int64_t rank(std::int64_t group, std::int64_t i) const;
  bool operator<(const Groups& other) const { return lines_ < other.lines_; }

 private:
  std::vector<Line> lines_;  // ascending; axes that follow each other are one
  Line stages_{};
  std::int64_t size_ = 1;
};

inline constexpr std::int32_t kAnyStage = -1;

/// What communication takes from kernels beside it, of the multiprocessors of a device.
struct Held {
  /// How much longer, at least, a kernel takes that runs the whole time: share x time.
  Seconds delay{};
  double share = 0;  ///< At most.
};

/// Times over the groups of a line: of the slowest and of the fastest one.
struct Spread {
  Seconds slowest;
  Seconds fastest;
  Held held{};
};

/// What communication takes at least, and what it holds meanwhile.
struct LeastTime {
  Seconds time;
  Held held{};
};

/// Asks a CostModel and remembers. One object for each thread.
class Times {
 public:
  /// Both must outlive it.
  Times(const CostModel& cost, const Places& places) : cost_(cost), places_(places) {}

  /// On one kind of device (an index into Places::kinds).
  Seconds kernel(const Kernel& kernel, std::int32_t kind);
  /// On the slowest and on the fastest of these kinds.
  Spread kernel(const Kernel& kernel, const Kinds& kinds);
  /// Of the first `ranks` ranks' groups, those all of whose devices are of these kinds. The slowest
  /// with what it takes longer because all groups of a stage do the same at once.
  /// \param stage  that the groups are of; kAnyStage: of all.
  Result<Spread> collective(program::CollectiveKind kind, Bytes bytes, const Groups& groups,
                            std::int64_t ranks, const Kinds& kinds, std::int32_t stage = kAnyStage);
  /// The slower of the first and the last of those ranks' groups, whatever their devices, likewise.
  Result<Seconds> slower_end(program::CollectiveKind kind, Bytes bytes, const Groups& groups,
                             std::int64_t ranks);
  /// What the first of those ranks takes at least with its group; where devices are of several
  /// kinds, what any of the ranks takes.
  Result<LeastTime> least(program::CollectiveKind kind, Bytes bytes, const Groups& groups,
                          std::int64_t ranks);
  /// Of the two ends of the first group of the line, as slower_end.
  Result<Seconds> ends(program::CollectiveKind kind, Bytes bytes, Line line, std::int64_t ranks);

  /// Which groups collective() looks at: a number that those share whose groups are alike.
  std::int32_t group_kinds(const Groups& groups, std::int64_t ranks, const Kinds& kinds,
                           std::int32_t stage = kAnyStage);
  /// Likewise of a transfer between two ranks of the first group of the line, by their places in
  /// it.
  std::int32_t transfer_kind(Line line, std::int64_t from, std::int64_t to);
  /// Of such a kind, on idle links.
  Result<Seconds> transfer(Bytes bytes, std::int32_t kind);

  /// Crowds (CostModel::crowd_kind), each once.
  using Crowds = std::vector<std::int32_t>;
  /// Of the same transfer in all groups of the line at once.
  const Crowds& transfer_crowds(Line line, std::int64_t from, std::int64_t to, std::int64_t ranks);
  /// What sharing links adds, in the crowd that it adds the most to.
  Result<Seconds> sharing(program::CollectiveKind kind, Bytes bytes, const Crowds& crowds);

 private:
  using GroupKind = std::int32_t;  // CostModel::group_kind

  std::vector<DeviceId> devices(const Groups& groups, std::int64_t index) const;
  GroupKind met(const std::vector<DeviceId>& devices);
  // Kinds of groups, each once.
  const std::vector<GroupKind>& kinds_of(const Groups& groups, std::int64_t ranks,
                                         const Kinds& kinds);
  Result<Seconds> operation(program::CollectiveKind kind, Bytes bytes, GroupKind group);
  Result<Held> held(program::CollectiveKind kind, Bytes bytes, GroupKind group);
  // The first and the last of those ranks' groups.
  std::pair<GroupKind, GroupKind> ends_of(const Groups& groups, std::int64_t ranks);
  // What the groups of a stage are: kinds of them and crowds, each once.
  struct Alike {
    std::vector<GroupKind> kinds{};
    Crowds crowds{};
    auto operator<=>(const Alike&) const = default;
  };
  const std::vector<Alike>& by_stage(const Groups& groups, std::int64_t ranks);
  // Those of each stage whose devices are all of these kinds (empty: of any).
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

/// Of a communication task of a block that lies on `mesh`.
Groups groups_of(const program::Communication& what, const std::vector<MeshAxis>& mesh);
std::int64_t ranks_of(const std::vector<MeshAxis>& mesh);

/// The tasks of `block`, which are one after another: its communication at least, as Times::least.
Result<LeastTime> chain_least(const program::Block& block, const std::vector<MeshAxis>& mesh,
                              Times& times);
/// ... and as Times::slower_end.
Result<Seconds> chain_time(const program::Block& block, const std::vector<MeshAxis>& mesh,
                           Times& times);

}  // namespace foreshard::search
