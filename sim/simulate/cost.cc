#include "sim/simulate/cost.h"

#include <algorithm>
#include <unordered_map>

#include "sim/simulate/fold.h"
#include "sim/simulate/internal/part_list.h"
#include "sim/simulate/simulate.h"
#include "topology/congruence.h"

namespace foreshard::sim {

// Numbers lists of devices by the structure of the nodes and switches that they run over
// (topology/congruence.h); if routes do not carry over, each list has its own number.
class SimulatedCost::GroupKinds {
 public:
  explicit GroupKinds(const ClusterView& cluster)
      : cluster_(cluster), congruence_(cluster), list_(congruence_) {}

  std::int32_t of(const std::vector<DeviceId>& devices) {
    list_.start();
    const bool carries = congruence_.fault().empty();
    for (const DeviceId device : devices) {
      const auto node =
          carries ? list_.meet(congruence_.part_of_node(cluster_.devices()[device.index()].node))
                  : 0;
      const std::int64_t place = carries ? congruence_.number_in_node(device) : device.value();
      list_.add({node << 32 | static_cast<std::uint64_t>(place)});
    }
    if (carries) list_.close();
    return known_.try_emplace(list_.key(), static_cast<std::int32_t>(known_.size())).first->second;
  }

 private:
  const ClusterView& cluster_;
  Congruence congruence_;
  internal::PartList list_;
  std::unordered_map<internal::PartKey, std::int32_t, internal::PartKeyHash> known_;
};

SimulatedCost::SimulatedCost(const ClusterView& cluster, const comm::Parameters& communication,
                             std::optional<program::TokenRouting> routing)
    : cluster_(cluster), communication_(communication), routing_(routing) {
  for (const DeviceType& type : cluster.device_types()) kernels_.emplace_back(type);
}
SimulatedCost::~SimulatedCost() = default;

std::int32_t SimulatedCost::group_kind(const std::vector<DeviceId>& devices) const {
  if (!group_kinds_) group_kinds_ = std::make_unique<GroupKinds>(cluster_);
  return group_kinds_->of(devices);
}

Sharing& SimulatedCost::sharing() const {
  if (!sharing_) sharing_ = std::make_unique<Sharing>(cluster_, communication_, routing_);
  return *sharing_;
}

std::int32_t SimulatedCost::crowd_kind(const std::vector<std::vector<DeviceId>>& groups) const {
  return sharing().crowd_kind(groups);
}

Result<Seconds> SimulatedCost::sharing_time(program::CollectiveKind kind, Bytes bytes,
                                            std::int32_t crowd) const {
  return sharing().time(kind, bytes, crowd);
}

comm::Participants SimulatedCost::participants(program::CollectiveKind kind,
                                               const std::vector<DeviceId>& devices) const {
  comm::Participants group{.cluster = &cluster_, .devices = devices, .flow = 0};
  if (kind == program::CollectiveKind::kTokenExchange) group.routing = routing_;
  return group;
}

Seconds SimulatedCost::kernel_time(const Kernel& kernel, DeviceTypeId type) const {
  return kernels_[type.index()](kernel);
}

Result<const comm::AlgorithmSelector*> SimulatedCost::selector(
    program::CollectiveKind kind, const std::vector<DeviceId>& devices) const {
  const std::pair key(kind, group_kind(devices));
  auto known = forms_.find(key);
  if (known == forms_.end()) {
    FORESHARD_ASSIGN(
        comm::AlgorithmSelector selector,
        comm::AlgorithmSelector::of(kind, participants(kind, devices), communication_));
    selector.forget_loads();
    known = forms_.emplace(key, std::move(selector)).first;
  }
  return &known->second;
}

Result<Seconds> SimulatedCost::communication_time(program::CollectiveKind kind, Bytes bytes,
                                                  const std::vector<DeviceId>& devices) const {
  if (devices.size() < 2 && !program::is_with_host(kind)) return Seconds{};
  FORESHARD_ASSIGN(const comm::AlgorithmSelector* const forms, selector(kind, devices));
  return forms->time(bytes);
}

Result<HeldMultiprocessors> SimulatedCost::held(program::CollectiveKind kind, Bytes bytes,
                                                const std::vector<DeviceId>& devices) const {
  if (devices.size() < 2 && !program::is_with_host(kind)) return HeldMultiprocessors{};
  FORESHARD_ASSIGN(const comm::AlgorithmSelector* const forms, selector(kind, devices));
  FORESHARD_ASSIGN(const auto flow, forms->flow(bytes));
  return HeldMultiprocessors{.share = flow.sm_share, .time = flow.time};
}

Result<Seconds> SimulatedCost::approximate_time(program::CollectiveKind kind, Bytes bytes,
                                                const std::vector<DeviceId>& devices) const {
  if (devices.size() < 2) return Seconds{};
  auto key = std::pair(kind, devices);
  auto known = approximate_.find(key);
  if (known == approximate_.end()) {
    FORESHARD_ASSIGN(
        comm::AlgorithmSelector selector,
        comm::AlgorithmSelector::representative(kind, participants(kind, devices), communication_));
    selector.forget_loads();
    known = approximate_.emplace(std::move(key), std::move(selector)).first;
  }
  return known->second.time(bytes);
}

Result<Seconds> SimulatedCost::exchange_time(const std::vector<DeviceTransfer>& transfers) const {
  if (transfers.empty()) return Seconds{};
  comm::Participants group{.cluster = &cluster_, .devices = {}, .flow = 0};
  std::unordered_map<std::int32_t, std::int32_t> member;
  const auto member_of = [&](DeviceId device) {
    const auto [place, is_new] =
        member.try_emplace(device.value(), static_cast<std::int32_t>(group.devices.size()));
    if (is_new) group.devices.push_back(device);
    return place->second;
  };
  Bytes bytes;
  for (const DeviceTransfer& transfer : transfers) bytes += transfer.bytes;
  for (const DeviceTransfer& transfer : transfers) {
    const std::int32_t from = member_of(transfer.from);
    group.transfers.push_back(
        {from, member_of(transfer.to), transfer.bytes / bytes, transfer.messages});
  }
  const auto selector =
      comm::AlgorithmSelector::of(program::CollectiveKind::kExchange, group, communication_);
  if (!selector) return selector.error();
  return selector->time(bytes);
}

Result<Seconds> SimulatedCost::program_time(const program::Program& program) const {
  FORESHARD_ASSIGN(const auto prediction,
                   simulate(cluster_, program, communication_, {.critical_path = false}));
  return prediction.step;
}

Result<std::vector<LinkBytes>> SimulatedCost::link_bytes(const program::Program& program) const {
  const Communicators communicators = communicators_of(program);
  FORESHARD_ASSIGN(const auto forms,
                   choose_forms(cluster_, program, communicators, communication_));
  std::vector<double> on_link(cluster_.links().size(), 0);
  for (const program::Role& role : program.roles) {
    // Each operation once: the first rank of a communicator adds it.
    for (const program::Call& call : role.calls) {
      const auto b = call.block.index();
      for (std::size_t t = 0; t < program.blocks[b].tasks.size(); ++t) {
        const std::int32_t endpoint = communicators.endpoint_of_task[b][t];
        if (endpoint == Communicators::kNone) continue;
        const auto& what = std::get<program::Communication>(program.blocks[b].tasks[t].body);
        if (what.kind == program::CollectiveKind::kReceive) continue;
        for (const std::int32_t rank : role.ranks) {
          const auto c = static_cast<std::size_t>(
              communicators
                  .of_rank[static_cast<std::size_t>(endpoint)][static_cast<std::size_t>(rank)]);
          if (communicators.all[c].ranks.front() != rank) continue;
          forms.each_load(c, forms.at(c, what.bytes), [&](LinkId link, double bytes_per_byte) {
            on_link[link.index()] +=
                bytes_per_byte * what.bytes.in_base() * static_cast<double>(call.repeat);
          });
        }
      }
    }
  }
  std::vector<LinkBytes> used;
  for (std::size_t l = 0; l < on_link.size(); ++l) {
    if (on_link[l] > 0)
      used.push_back({LinkId{static_cast<std::int64_t>(l)}, Bytes::from_base(on_link[l])});
  }
  return used;
}

}  // namespace foreshard::sim
