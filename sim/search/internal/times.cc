// Times of kernels and of communication over groups of ranks, for the estimates and bounds of the
// search (sim/search/internal).
#include "sim/search/internal/times.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"

#include "topology/clock_spread.h"

namespace foreshard::search {

RankDevices::RankDevices(const ClusterView& cluster, std::vector<std::int32_t> devices,
                         double margin, std::span<const std::int32_t> clocked)
    : cluster_(cluster), devices_(std::move(devices)), clocked_(cluster.device_types().size()) {
  for (const std::int32_t id : clocked)
    ++clocked_[cluster.devices()[DeviceId{id}.index()].type.index()];
  std::map<std::tuple<std::int64_t, double, Seconds, double>, std::int32_t> known;
  for (const std::int32_t id : devices_) {
    const Device& device = cluster.devices()[DeviceId{id}.index()];
    const Host& host = cluster.host(device.node);
    const auto [kind, added] =
        known.try_emplace({device.type.value(), device.speed, host.launch_time, host.speed},
                          static_cast<std::int32_t>(kinds_.size()));
    if (added)
      kinds_.push_back(
          {.type = device.type,
           .speed = device.speed,
           .memory = (1 - margin) * cluster.device_types()[device.type.index()].memory.value,
           .host = host});
    kind_of_rank_.push_back(kind->second);
  }
}

const std::vector<std::int32_t>& RankDevices::of_stages(const std::vector<MeshAxis>& mesh) {
  const auto pipeline = std::ranges::find(mesh, "pipeline", &MeshAxis::name);
  FORESHARD_CHECK(pipeline != mesh.end());
  std::int64_t stride = 1;
  for (auto axis = mesh.begin(); axis != pipeline; ++axis) stride *= axis->size;
  std::int64_t ranks = 1;
  for (const MeshAxis& axis : mesh) ranks *= axis.size;
  FORESHARD_CHECK(std::cmp_less_equal(ranks, devices_.size()));
  const auto [known, added] = of_stages_.try_emplace({stride, pipeline->size, ranks});
  if (!added) return known->second;
  std::vector<std::set<std::int32_t>> stages(static_cast<std::size_t>(pipeline->size));
  if (kinds_.size() == 1) {
    for (auto& stage : stages) stage = {0};
  } else {
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      stages[static_cast<std::size_t>(rank / stride % pipeline->size)].insert(kind_of(rank));
  }
  for (const auto& stage : stages)
    known->second.push_back(number_of(Kinds(stage.begin(), stage.end()), 0));
  return known->second;
}

double RankDevices::clock_ratio(std::int64_t ranks) {
  const auto [known, added] = clock_ratio_.try_emplace(ranks, 1);
  if (!added) return known->second;
  std::vector<std::int64_t> used(clocked_.size());
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    ++used[cluster_.devices()[device(rank).index()].type.index()];
  for (std::size_t i = 0; i < used.size(); ++i) {
    const DeviceType& type = cluster_.device_types()[i];
    if (used[i] > 0 && used[i] < clocked_[i])
      known->second = std::min(
          known->second, share_of_slowest(type, clocked_[i]) / share_of_slowest(type, used[i]));
  }
  return known->second;
}

Seconds RankDevices::launching(std::int32_t number, Seconds host_time) const {
  Seconds slowest;
  for (const std::int32_t kind : set(number))
    slowest = std::max(slowest, kinds_[static_cast<std::size_t>(kind)].host.launching(host_time));
  return slowest;
}

std::int32_t RankDevices::variant(std::int32_t number, std::int32_t ordinal) {
  return ordinal == 0 ? number : number_of(set(number), ordinal);
}

std::int32_t RankDevices::number_of(Kinds kinds, std::int32_t ordinal) {
  std::pair wanted(std::move(kinds), ordinal);
  auto known = std::ranges::find(sets_, wanted);
  if (known == sets_.end()) known = sets_.insert(known, std::move(wanted));
  return static_cast<std::int32_t>(known - sets_.begin());
}

using program::Communication;
using program::Task;

StridedAxis strided_axis(const std::vector<MeshAxis>& mesh, Axis axis) {
  StridedAxis line;
  const auto index = static_cast<std::size_t>(axis);
  for (std::size_t i = 0; i < index; ++i) line.stride *= mesh[i].size;
  line.size = mesh[index].size;
  return line;
}

RankGroups::RankGroups(const std::vector<MeshAxis>& mesh, const std::vector<Axis>& axes) {
  for (const Axis axis : axes) {
    const StridedAxis line = search::strided_axis(mesh, axis);
    if (line.size == 1) continue;
    size_ *= line.size;
    const bool continues =
        !lines_.empty() && lines_.back().stride * lines_.back().size == line.stride;
    if (continues)
      lines_.back().size *= line.size;
    else
      lines_.push_back(line);
  }
  if (axes.empty()) return;  // Copies to and from hosts do not depend on the stage.
  for (Axis axis = 0; axis < static_cast<Axis>(mesh.size()); ++axis)
    if (mesh[static_cast<std::size_t>(axis)].name == "pipeline" &&
        std::ranges::find(axes, axis) == axes.end())
      stages_ = search::strided_axis(mesh, axis);
}

// The rank of member `i` of a group. A group's first rank has coordinate 0 along each line of the
// group. Its number is the group's number with digits 0 inserted at the places of the lines.
std::int64_t RankGroups::rank(std::int64_t group, std::int64_t i) const {
  std::int64_t first = group;
  std::int64_t offset = 0;
  for (const StridedAxis& line : lines_) {
    first = first / line.stride * line.stride * line.size + first % line.stride;
    offset += i % line.size * line.stride;
    i /= line.size;
  }
  return first + offset;
}

Seconds CostCache::kernel(const Kernel& kernel, std::int32_t kind) {
  const auto [known, added] = kernels_.try_emplace({kernel, kind});
  if (added) {
    const DeviceKind& of = places_.kinds()[static_cast<std::size_t>(kind)];
    known->second = cost_.kernel_time(kernel, of.type) / of.speed;
  }
  return known->second;
}

TimeRange CostCache::kernel(const Kernel& kernel, const Kinds& kinds) {
  TimeRange spread{.slowest = {}, .fastest = kNever};
  for (const std::int32_t kind : kinds) {
    const Seconds time = this->kernel(kernel, kind);
    spread.slowest = std::max(spread.slowest, time);
    spread.fastest = std::min(spread.fastest, time);
  }
  return spread;
}

std::vector<DeviceId> CostCache::devices(const RankGroups& groups, std::int64_t index) const {
  std::vector<DeviceId> devices;
  devices.reserve(static_cast<std::size_t>(groups.size()));
  for (std::int64_t i = 0; i < groups.size(); ++i)
    devices.push_back(places_.device(groups.rank(index, i)));
  return devices;
}

CostCache::GroupKind CostCache::met(const std::vector<DeviceId>& devices) {
  const GroupKind kind = cost_.group_kind(devices);
  first_of_kind_.try_emplace(kind, devices);
  return kind;
}

const std::vector<CostCache::GroupKind>& CostCache::kinds_of(const RankGroups& groups,
                                                             std::int64_t ranks,
                                                             const Kinds& kinds) {
  const auto [known, added] = kinds_of_.try_emplace({groups, ranks, kinds});
  if (!added) return known->second;
  const bool every_kind = kinds.size() == places_.kinds().size();
  std::set<GroupKind> found;
  for (std::int64_t g = 0; g < ranks / groups.size(); ++g) {
    bool of_them = true;
    for (std::int64_t i = 0; i < groups.size() && !every_kind && of_them; ++i)
      of_them = std::ranges::binary_search(kinds, places_.kind_of(groups.rank(g, i)));
    if (of_them) found.insert(met(devices(groups, g)));
  }
  known->second.assign(found.begin(), found.end());
  return known->second;
}

std::int32_t CostCache::group_kinds(const RankGroups& groups, std::int64_t ranks,
                                    const Kinds& kinds, std::int32_t stage) {
  const auto number_of = [&](StageGroups alike) {
    return sets_.try_emplace(std::move(alike), static_cast<std::int32_t>(sets_.size()))
        .first->second;
  };
  return stage == kAnyStage
             ? number_of({kinds_of(groups, ranks, kinds), concurrent_of(groups, ranks, kinds)})
             : number_of(by_stage(groups, ranks)[static_cast<std::size_t>(stage)]);
}

// Groups that each lie within one node share links only with groups of the same node.
void CostCache::add_concurrent(const std::vector<std::vector<DeviceId>>& groups,
                               std::set<std::int32_t>& concurrent) {
  const auto& all = places_.cluster().devices();
  std::map<std::int32_t, std::vector<std::vector<DeviceId>>> by_node;
  for (const auto& group : groups) {
    const std::int32_t node = all[group.front().index()].node;
    const bool is_inside = std::ranges::all_of(
        group, [&](DeviceId device) { return all[device.index()].node == node; });
    if (!is_inside) {
      concurrent.insert(cost_.crowd_kind(groups));
      return;
    }
    by_node[node].push_back(group);
  }
  for (const auto& [node, inside] : by_node) concurrent.insert(cost_.crowd_kind(inside));
}

const CostCache::ConcurrentKinds& CostCache::concurrent_of(const RankGroups& groups,
                                                           std::int64_t ranks, const Kinds& kinds) {
  const auto [known, added] = concurrent_.try_emplace({groups, groups.stages(), ranks, kinds});
  if (!added) return known->second;
  const StridedAxis& line = groups.stages();
  std::vector<bool> of_them(static_cast<std::size_t>(line.size), true);
  if (!kinds.empty() && kinds.size() < places_.kinds().size())
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      if (!std::ranges::binary_search(kinds, places_.kind_of(rank)))
        of_them[static_cast<std::size_t>(rank / line.stride % line.size)] = false;
  std::set<std::int32_t> found;
  const std::vector<StageGroups>& stages = by_stage(groups, ranks);
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    if (of_them[stage])
      found.insert(stages[stage].concurrent.begin(), stages[stage].concurrent.end());
  known->second.assign(found.begin(), found.end());
  return known->second;
}

const std::vector<CostCache::StageGroups>& CostCache::by_stage(const RankGroups& groups,
                                                               std::int64_t ranks) {
  const auto [known, added] = by_stage_.try_emplace({groups, groups.stages(), ranks});
  if (!added) return known->second;
  const StridedAxis& line = groups.stages();
  std::vector<std::vector<std::vector<DeviceId>>> stages(static_cast<std::size_t>(line.size));
  for (std::int64_t g = 0; g < ranks / groups.size(); ++g)
    stages[static_cast<std::size_t>(groups.rank(g, 0) / line.stride % line.size)].push_back(
        devices(groups, g));
  for (const auto& of_stage : stages) {
    std::set<GroupKind> kinds;
    for (const auto& group : of_stage) kinds.insert(met(group));
    std::set<std::int32_t> concurrent;
    add_concurrent(of_stage, concurrent);
    known->second.push_back({{kinds.begin(), kinds.end()}, {concurrent.begin(), concurrent.end()}});
  }
  return known->second;
}

const CostCache::ConcurrentKinds& CostCache::concurrent_transfers(StridedAxis line,
                                                                  std::int64_t from,
                                                                  std::int64_t to,
                                                                  std::int64_t ranks) {
  const auto [known, added] = concurrent_transfers_.try_emplace({line, from, to, ranks});
  if (!added) return known->second;
  std::vector<std::vector<DeviceId>> pairs;
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    if (rank / line.stride % line.size == 0)
      pairs.push_back(
          {places_.device(rank + from * line.stride), places_.device(rank + to * line.stride)});
  std::set<std::int32_t> found;
  add_concurrent(pairs, found);
  known->second.assign(found.begin(), found.end());
  return known->second;
}

Result<Seconds> CostCache::sharing(program::CollectiveKind kind, Bytes bytes,
                                   const ConcurrentKinds& concurrent) {
  Seconds most;
  for (const std::int32_t crowd : concurrent) {
    const auto [known, added] = sharings_.try_emplace({kind, bytes.in_base(), crowd});
    if (added) {
      const auto time = cost_.sharing_time(kind, bytes, crowd);
      if (!time) {
        sharings_.erase(known);
        return time;
      }
      known->second = *time;
    }
    most = std::max(most, known->second);
  }
  return most;
}

Result<Seconds> CostCache::operation(program::CollectiveKind kind, Bytes bytes, GroupKind group) {
  const std::tuple key(kind, bytes.in_base(), group);
  if (const auto it = operations_.find(key); it != operations_.end()) return it->second;
  FORESHARD_ASSIGN(const auto time,
                   cost_.communication_time(kind, bytes, first_of_kind_.at(group)));
  return operations_.emplace(key, time).first->second;
}

Result<SmContention> CostCache::held(program::CollectiveKind kind, Bytes bytes, GroupKind group) {
  const std::tuple key(kind, bytes.in_base(), group);
  if (const auto it = held_.find(key); it != held_.end()) return it->second;
  FORESHARD_ASSIGN(const auto held, cost_.held(kind, bytes, first_of_kind_.at(group)));
  return held_.emplace(key, SmContention{.delay = held.share * held.time, .share = held.share})
      .first->second;
}

Result<TimeRange> CostCache::collective(program::CollectiveKind kind, Bytes bytes,
                                        const RankGroups& groups, std::int64_t ranks,
                                        const Kinds& kinds, std::int32_t stage) {
  TimeRange spread{.slowest = {}, .fastest = kNever, .held = {.delay = kNever}};
  const StageGroups* const alone = stage == kAnyStage || groups.stages().size == 1
                                       ? nullptr
                                       : &by_stage(groups, ranks)[static_cast<std::size_t>(stage)];
  for (const GroupKind group : alone != nullptr ? alone->kinds : kinds_of(groups, ranks, kinds)) {
    FORESHARD_ASSIGN(const auto time, operation(kind, bytes, group));
    spread.slowest = std::max(spread.slowest, time);
    spread.fastest = std::min(spread.fastest, time);
    FORESHARD_ASSIGN(const auto held, this->held(kind, bytes, group));
    spread.held.delay = std::min(spread.held.delay, held.delay);
    spread.held.share = std::max(spread.held.share, held.share);
  }
  FORESHARD_ASSIGN(
      const auto shared,
      sharing(kind, bytes,
              alone != nullptr ? alone->concurrent : concurrent_of(groups, ranks, kinds)));
  spread.slowest += shared;
  // Hashed paths differ between operations, so the best case is not known.
  if (places_.cluster().routing() == Routing::kEcmpHash)
    spread.fastest = spread.held.delay = Seconds{};
  return spread;
}

Result<Seconds> CostCache::slower_end(program::CollectiveKind kind, Bytes bytes,
                                      const RankGroups& groups, std::int64_t ranks) {
  const auto ends = ends_of(groups, ranks);
  FORESHARD_ASSIGN(const auto first, operation(kind, bytes, ends.first));
  FORESHARD_ASSIGN(const auto last, operation(kind, bytes, ends.second));
  // Sharing a link adds only some nanoseconds to a norm of 4 bytes.
  constexpr Bytes kTooFewToShare = 64_B;
  if (bytes < kTooFewToShare) return std::max(first, last);
  FORESHARD_ASSIGN(const auto shared, sharing(kind, bytes, concurrent_of(groups, ranks, {})));
  return std::max(first, last) + shared;
}

// The least time of a communication, for bounds. A step is no shorter than the work of its first
// rank. Where devices differ, the passes of the bound may belong to another rank, so the fastest
// group decides.
Result<LeastTime> CostCache::least(program::CollectiveKind kind, Bytes bytes,
                                   const RankGroups& groups, std::int64_t ranks) {
  if (places_.cluster().routing() == Routing::kEcmpHash) return LeastTime{};
  if (places_.kinds().size() == 1) {
    const GroupKind first = ends_of(groups, ranks).first;
    FORESHARD_ASSIGN(const auto time, operation(kind, bytes, first));
    FORESHARD_ASSIGN(const auto held, this->held(kind, bytes, first));
    return LeastTime{.time = time, .held = held};
  }
  Kinds all(places_.kinds().size());
  std::iota(all.begin(), all.end(), 0);
  FORESHARD_ASSIGN(const TimeRange spread, collective(kind, bytes, groups, ranks, all));
  return LeastTime{.time = spread.fastest, .held = spread.held};
}

std::pair<CostCache::GroupKind, CostCache::GroupKind> CostCache::ends_of(const RankGroups& groups,
                                                                         std::int64_t ranks) {
  const auto [ends, added] = ends_.try_emplace({groups, ranks});
  if (added)
    ends->second = {met(devices(groups, 0)), met(devices(groups, ranks / groups.size() - 1))};
  return ends->second;
}

Result<Seconds> CostCache::ends(program::CollectiveKind kind, Bytes bytes, StridedAxis line,
                                std::int64_t ranks) {
  FORESHARD_ASSIGN(
      const auto alone,
      operation(kind, bytes,
                met({places_.device(0), places_.device((line.size - 1) * line.stride)})));
  FORESHARD_ASSIGN(const auto shared,
                   sharing(kind, bytes, concurrent_transfers(line, 0, line.size - 1, ranks)));
  return alone + shared;
}

std::int32_t CostCache::transfer_kind(StridedAxis line, std::int64_t from, std::int64_t to) {
  const auto [known, added] = transfers_.try_emplace({line, from, to});
  if (added)
    known->second = met({places_.device(from * line.stride), places_.device(to * line.stride)});
  return known->second;
}

Result<Seconds> CostCache::transfer(Bytes bytes, std::int32_t kind) {
  return operation(program::CollectiveKind::kSend, bytes, kind);
}

RankGroups groups_of(const Communication& what, const std::vector<MeshAxis>& mesh) {
  const auto* group = std::get_if<program::AxisGroup>(&what.group);
  FORESHARD_CHECK(group != nullptr && group->coordinates.empty());
  return {mesh, group->axes};
}

std::int64_t ranks_of(const std::vector<MeshAxis>& mesh) {
  std::int64_t ranks = 1;
  for (const MeshAxis& axis : mesh) ranks *= axis.size;
  return ranks;
}

Result<LeastTime> chain_least(const program::Block& block, lower::StreamIndex stream,
                              const std::vector<MeshAxis>& mesh, CostCache& times) {
  LeastTime least;
  for (const Task& task : block.tasks) {
    const auto* const what = std::get_if<Communication>(&task.body);
    if (what == nullptr || task.stream != lower::stream(stream)) continue;
    FORESHARD_ASSIGN(const LeastTime one,
                     times.least(what->kind, what->bytes, groups_of(*what, mesh), ranks_of(mesh)));
    least.time += one.time;
    least.held.delay += one.held.delay;
    least.held.share = std::max(least.held.share, one.held.share);
  }
  return least;
}

}  // namespace foreshard::search
