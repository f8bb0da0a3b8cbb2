// Ranks the best strategies of a search again with other numbers (robustness.h), for search.cc. No
// step is simulated again: simulated steps are scaled by estimates.
#include "sim/search/robustness.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/record/record.h"
#include "base/threads.h"

#include "sim/compute/evidence.h"
#include "sim/disturbance/distribution.h"
#include "sim/search/device_subset.h"
#include "sim/search/estimate.h"
#include "sim/search/internal/forms.h"
#include "sim/search/internal/times.h"
#include "sim/simulate/cost.h"
#include "sim/study/run.h"
#include "strategies/program/lower/exchanges.h"
#include "topology/clock_spread.h"

namespace foreshard::search {
namespace {

constexpr std::uint64_t kSeed = 20241125;

// Costs with a random factor for each group of parameters, whose spread depends on the evidence.
class DrawnCost final : public CostModel {
 public:
  DrawnCost(const CostModel& cost, const ClusterView& cluster, const study::ParameterErrors& errors,
            std::int64_t draw)
      : cost_(cost), cluster_(cluster), errors_(errors), draw_(static_cast<std::uint64_t>(draw)) {}

  Seconds kernel_time(const Kernel& kernel, DeviceTypeId type) const override {
    const DeviceType& device = cluster_.device_types()[type.index()];
    return cost_.kernel_time(kernel, type) *
           factor(group_of(kernel), evidence_of(kernel, device), type.index());
  }
  Result<Seconds> communication_time(program::CollectiveKind kind, Bytes bytes,
                                     const std::vector<DeviceId>& devices) const override {
    FORESHARD_ASSIGN(const auto time, cost_.communication_time(kind, bytes, devices));
    return time * of_communication();
  }
  Result<HeldMultiprocessors> held(program::CollectiveKind kind, Bytes bytes,
                                   const std::vector<DeviceId>& devices) const override {
    FORESHARD_ASSIGN(auto found, cost_.held(kind, bytes, devices));
    found.time = found.time * of_communication();
    return found;
  }
  std::int32_t group_kind(const std::vector<DeviceId>& devices) const override {
    return cost_.group_kind(devices);
  }
  std::int32_t crowd_kind(const std::vector<std::vector<DeviceId>>& groups) const override {
    return cost_.crowd_kind(groups);
  }
  Result<Seconds> sharing_time(program::CollectiveKind kind, Bytes bytes,
                               std::int32_t crowd) const override {
    FORESHARD_ASSIGN(const auto time, cost_.sharing_time(kind, bytes, crowd));
    return time * of_communication();
  }
  Result<Seconds> approximate_time(program::CollectiveKind kind, Bytes bytes,
                                   const std::vector<DeviceId>& devices) const override {
    FORESHARD_ASSIGN(const auto time, cost_.approximate_time(kind, bytes, devices));
    return time * of_communication();
  }
  Result<Seconds> exchange_time(const std::vector<DeviceTransfer>& transfers) const override {
    FORESHARD_ASSIGN(const auto time, cost_.exchange_time(transfers));
    return time * of_communication();
  }
  Result<Seconds> program_time(const program::Program& program) const override {
    return cost_.program_time(program);
  }
  Result<std::vector<LinkBytes>> link_bytes(const program::Program& program) const override {
    return cost_.link_bytes(program);
  }

 private:
  double factor(ParameterGroup group, yaml::Evidence evidence, std::size_t type) const {
    const study::ErrorRange& range = errors_.of(group).at(evidence);
    const disturbance::Distribution errors{
        .kind = disturbance::DistributionKind::kLognormal,
        .median = 1,
        .sigma = std::log(range.high / range.low) / (2 * kDeviationsToTenth)};
    return disturbance::sample(
        errors, disturbance::key_of(kSeed, static_cast<std::uint64_t>(group), type, draw_));
  }
  double of_communication() const {
    return factor(ParameterGroup::kCommunication, yaml::Evidence::kFitted, 0);
  }

  const CostModel& cost_;
  const ClusterView& cluster_;
  const study::ParameterErrors& errors_;
  std::uint64_t draw_;
};

// The cluster with that device slowed down to kSlowSpeed of its speed.
Result<ClusterView> with_slow_device(const study::LoadedStudy& study, const ClusterView& cluster,
                                     std::int32_t id) {
  const Device& device = cluster.devices()[DeviceId{id}.index()];
  ClusterConfig config = study.cluster;
  config.degraded.push_back({.devices = cluster.vertices()[device.vertex.index()].name,
                             .speed = kSlowSpeed * device.speed});
  return build_cluster(at_clocks_of_slowest(std::move(config), study.pool.devices), study.loader,
                       "cluster");
}

// One estimated step per contender; kNever where it cannot be estimated.
std::vector<Seconds> estimates_of(const study::LoadedStudy& study, const ClusterView& cluster,
                                  const CostModel& cost, const std::vector<Contender>& contenders,
                                  const std::shared_ptr<SharedPlanForms>& forms) {
  std::vector<Seconds> estimates;
  for (const Contender& one : contenders) {
    Estimator estimator(study.model, cluster, one.devices, cost, forms);
    const auto estimate =
        estimator.estimate(with_equal_shares(one.strategy, one.strategy.micro_batches()));
    estimates.push_back(estimate ? estimate->step : kNever);
  }
  return estimates;
}

std::int64_t fastest(const std::vector<Contender>& contenders, const std::vector<Seconds>& usual,
                     const std::vector<Seconds>& drawn) {
  std::int64_t first = 0;
  const auto step = [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    const bool is_known = usual[at] > Seconds{} && usual[at] < kNever && drawn[at] < kNever;
    return is_known ? contenders[at].step * (drawn[at] / usual[at]) : kNever;
  };
  for (std::int64_t i = 1; i < std::ssize(contenders); ++i)
    if (step(i) < step(first)) first = i;
  return first;
}

}  // namespace

Result<Robustness> robustness_of(const study::LoadedStudy& study, const ClusterView& cluster,
                                 const std::vector<Contender>& contenders, std::int64_t threads) {
  Robustness result;
  if (contenders.size() < 2) return result;
  FORESHARD_ASSIGN(const auto slowed,
                   with_slow_device(study, cluster, contenders.front().devices.front()));
  const auto routing = lower::routing_of(study.model);
  const auto forms = std::make_shared<SharedPlanForms>();
  std::vector<Seconds> usual;
  std::vector<Seconds> slow;
  std::vector<std::vector<Seconds>> drawn(kDraws);
  std::atomic<std::size_t> next = 0;
  const auto draw_all = [&](const ClusterView& own, const sim::SimulatedCost& undrawn) {
    for (std::size_t draw = next++; draw < drawn.size(); draw = next++) {
      const DrawnCost cost(undrawn, own, study.errors, static_cast<std::int64_t>(draw));
      drawn[draw] = estimates_of(study, own, cost, contenders, forms);
    }
  };
  const auto slow_down = [&] {
    const sim::SimulatedCost cost(slowed, study.communication, routing);
    slow = estimates_of(study, slowed, cost, contenders, forms);
  };
  std::atomic<bool> slowed_down = false;
  in_threads(threads, [&](std::int64_t i) {
    if (i == 0) {
      const sim::SimulatedCost cost(cluster, study.communication, routing);
      usual = estimates_of(study, cluster, cost, contenders, forms);
      return draw_all(cluster, cost);
    }
    if (!slowed_down.exchange(true)) slow_down();
    if (next >= drawn.size()) return;
    // A cluster caches the routes that it finds, so each thread has its own.
    const auto own = cluster_of(study, study.pool.devices);
    FORESHARD_CHECK(own.has_value());  // it could be built earlier
    draw_all(*own, sim::SimulatedCost(*own, study.communication, routing));
  });
  if (!slowed_down) slow_down();
  result.draws = kDraws;
  result.firsts.assign(contenders.size(), 0);
  for (const auto& estimates : drawn)
    ++result.firsts[static_cast<std::size_t>(fastest(contenders, usual, estimates))];
  result.beside_slow = fastest(contenders, usual, slow);
  return result;
}

const record::Record<Robustness>& record_of(const Robustness*) {
  static const auto record =
      record::Record<Robustness>("robustness", "The best few, ranked again with other numbers.")
          .field("draws", &Robustness::draws, "Draws of the parameters from their errors.")
          .field("firsts", &Robustness::firsts, "In how many draws each of them is the fastest.")
          .field(
              "first_beside_slow_device", [](const Robustness& of) { return of.beside_slow + 1; },
              "Rank of the one that is the fastest if one device is slow.")
          .field("holds", &Robustness::holds, "Whether the first is the fastest in most draws.");
  return record;
}

}  // namespace foreshard::search
