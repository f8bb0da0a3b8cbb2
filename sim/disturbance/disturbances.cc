// Reads the `disturbances:` of a study and makes the plan (plan.h) that sim/study hands to the
// simulation. The files beside this one, one for each kind of disturbance, add to the plan.
#include "sim/disturbance/disturbances.h"

#include <algorithm>
#include <utility>

#include "sim/disturbance/distribution.h"
#include "sim/disturbance/internal/names.h"
#include "sim/disturbance/plan.h"
#include "topology/cluster_builder.h"

namespace foreshard::disturbance {
namespace {

constexpr double kMostRuns = 10'000;

std::string words_of(const Distribution& d) {
  const auto pair = [](double a, double b) {
    return internal::percent(a) + ", " + internal::percent(b);
  };
  switch (d.kind) {
    case DistributionKind::kNormal:
      return "normal (" + pair(*d.mean, *d.deviation) + ")";
    case DistributionKind::kLognormal:
      return "lognormal (" + pair(*d.median, *d.sigma) + ")";
    case DistributionKind::kUniform:
      return "uniform (" + pair(*d.low, *d.high) + ")";
  }
  return "";
}

}  // namespace

const yaml::Table<Disturbances>& yaml_table(const Disturbances*) {
  using D = Disturbances;
  static const auto table =
      yaml::Table<D>("disturbances",
                     "Disturbances of the step: slow devices, failures, other traffic.")
          .optional("seed", &D::seed,
                    "Seed of everything random: the same seed gives the same step.",
                    yaml::at_least(0))
          .optional("runs", &D::runs, "How many steps to simulate, with seed, seed + 1, ...",
                    yaml::at_least(1), yaml::at_most(kMostRuns))
          .optional("stragglers", &D::stragglers, "Devices that are slower than their type.")
          .optional("links", &D::links, "Links whose bandwidth changes over time.")
          .optional("failures", &D::failures, "What breaks during the step.")
          .optional("background", &D::background, "Traffic of other jobs on the same links.")
          .optional("jitter", &D::jitter,
                    "A random factor on the time of every kernel of every device. Every device is "
                    "then simulated, not one of each class.");
  return table;
}

bool about_links(const Disturbances& d) {
  return std::ranges::any_of(d.links, changes) || !d.failures.empty() || !d.background.empty();
}

bool random(const Disturbances& d) {
  return d.jitter.has_value() || std::ranges::any_of(d.stragglers, [](const Straggler& s) {
           return s.distribution.has_value() || s.fraction.has_value();
         });
}

Result<Plan> plan_of(const Disturbances& d, const ClusterView& cluster,
                     std::span<const std::int32_t> used, std::int64_t run, const ErrorAt& error) {
  Plan plan;
  plan.seed = static_cast<std::uint64_t>(d.seed + run);
  FORESHARD_TRY(add_stragglers(plan, d.stragglers, cluster, used, error));
  FORESHARD_TRY(add_link_profiles(plan, d.links, cluster, error));
  FORESHARD_TRY(add_failures(plan, d.failures, cluster, error));
  FORESHARD_TRY(add_background(plan, d.background, cluster, error));
  if (d.jitter) {
    plan.jitter = d.jitter;
    plan.hits.push_back({.kind = "jitter",
                         .effect = "every kernel's time by a factor, " + words_of(*d.jitter),
                         .count = std::ssize(used),
                         .who = {}});
  }
  return plan;
}

std::optional<ClusterView> slowed(const ClusterView& cluster, const Plan& plan) {
  if (plan.slow.empty()) return std::nullopt;
  auto copy = ClusterView::Builder::copy_of(cluster);
  for (const SlowDevice& slow : plan.slow)
    copy.set_speed(slow.device, cluster.devices()[slow.device.index()].speed * slow.speed);
  return std::move(copy).build();
}

double kernel_factor(const Plan* plan, std::int32_t rank, std::size_t instance) {
  if (plan == nullptr || !plan->jitter) return 1;
  return sample(*plan->jitter,
                key_of(plan->seed, kJitter, static_cast<std::uint64_t>(rank), instance));
}

}  // namespace foreshard::disturbance
