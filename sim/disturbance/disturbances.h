/// \file
/// The `disturbances:` of a study: slow devices, changing links, failures and other traffic.
///
///     disturbances:
///       seed: 1
///       runs: 20                               # mean, median and 95th percentile over seeds
///       stragglers: [{fraction: 0.01, speed: 0.8}]
///       links: [{links: "node0/nic0", profile: [{at: 2 s, factor: 0.3}]}]
///       failures: [{link: "pod0/leaf0 - spine1", at: 3 s, then: reroute}]
///       background: [{from: node0/gpu0, to: node5/gpu0}]
///       jitter: {kind: lognormal, median: 1, sigma: 0.02}
///
/// Times count from the beginning of the step.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"

#include "sim/disturbance/background.h"
#include "sim/disturbance/failures.h"
#include "sim/disturbance/link_profiles.h"
#include "sim/disturbance/plan.h"
#include "sim/disturbance/stragglers.h"

namespace foreshard::disturbance {

struct Disturbances {
  std::int64_t seed = 0;
  std::int64_t runs = 1;
  std::vector<Straggler> stragglers;
  std::vector<LinkProfile> links;
  std::vector<Failure> failures;
  std::vector<Background> background;
  std::optional<Distribution> jitter;
};

const yaml::Table<Disturbances>& yaml_table(const Disturbances*);

/// Whether any disturbance concerns single links or switches, so that a cluster must not merge
/// them.
bool about_links(const Disturbances& disturbances);

/// Whether the plan depends on the seed.
bool random(const Disturbances& disturbances);

/// The plan of `disturbances` on a cluster in run `run` (0, 1, ...). Its seed is the seed of
/// `disturbances` plus `run`.
/// \param used  the devices of the job's ranks. A straggler's `fraction` chooses among these only.
/// \return The error that `error` makes of a selector that matches nothing, a link with two
///     profiles, a failure of everything, or a background flow without a route.
Result<Plan> plan_of(const Disturbances& disturbances, const ClusterView& cluster,
                     std::span<const std::int32_t> used, std::int64_t run, const ErrorAt& error);

}  // namespace foreshard::disturbance
