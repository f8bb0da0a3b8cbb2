#include "sim/search/internal/places.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace foreshard::search {

Places::Places(const ClusterView& cluster, std::vector<std::int32_t> devices, double margin)
    : cluster_(cluster), devices_(std::move(devices)) {
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

const std::vector<std::int32_t>& Places::of_stages(const std::vector<MeshAxis>& mesh) {
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

Seconds Places::launching(std::int32_t number, Seconds host_time) const {
  Seconds slowest;
  for (const std::int32_t kind : set(number))
    slowest = std::max(slowest, kinds_[static_cast<std::size_t>(kind)].host.launching(host_time));
  return slowest;
}

std::int32_t Places::variant(std::int32_t number, std::int32_t ordinal) {
  return ordinal == 0 ? number : number_of(set(number), ordinal);
}

std::int32_t Places::number_of(Kinds kinds, std::int32_t ordinal) {
  std::pair wanted(std::move(kinds), ordinal);
  auto known = std::ranges::find(sets_, wanted);
  if (known == sets_.end()) known = sets_.insert(known, std::move(wanted));
  return static_cast<std::int32_t>(known - sets_.begin());
}

}  // namespace foreshard::search
