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
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "base/yaml/table.h"

#include "sim/disturbance/plan.h"

namespace foreshard::disturbance {

// Devices that are slower than their type, all the time or for a while.
//
//     stragglers:
//       - {devices: node3/gpu5, speed: 0.5}                     # a bad unit
//       - {fraction: 0.01, speed: 0.8}                          # one in a hundred, chosen by seed
//       - {distribution: {kind: normal, mean: 1, deviation: 0.02}}  # each its own
//       - {devices: "node0/*", speed: 0.7, at: 2 s, until: 5 s} # throttled for a while

struct Straggler {
  std::string devices = "*";  ///< A selector (topology/select.h).
  /// Share of those matching devices that the job uses, chosen by seed; at least one device.
  std::optional<double> fraction;
  std::optional<double> speed;  ///< Share of the device's speed that it keeps.
  /// Distribution of each device's speed, instead of `speed`.
  std::optional<Distribution> distribution;
  Seconds at{};
  std::optional<Seconds> until;
};

const yaml::Table<Straggler>& yaml_table(const Straggler*);

Status add_stragglers(Plan& plan, const std::vector<Straggler>& stragglers,
                      const ClusterView& cluster, std::span<const std::int32_t> used,
                      const ErrorAt& error);

// Links whose bandwidth changes over time.
//
//     links:
//       - {links: "node0/nic0 - *", profile: [{at: 0 s, factor: 1}, {at: 2 s, factor: 0.3}]}
//       - links: "pod0/leaf0 - spine1"                  # flaps: 10 ms of every second
//         profile: [{at: 0.5 s, factor: 0}, {at: 0.51 s, factor: 1}]
//         period: 1 s

struct LinkProfile {
  std::string links;  ///< A selector (topology/select.h).
  std::vector<ProfilePoint> profile;
  std::optional<Seconds> period;
};

const yaml::Table<ProfilePoint>& yaml_table(const ProfilePoint*);
const yaml::Table<LinkProfile>& yaml_table(const LinkProfile*);

/// Adds the profiles to the plan; profiles whose factors are all 1 are left out.
Status add_link_profiles(Plan& plan, const std::vector<LinkProfile>& profiles,
                         const ClusterView& cluster, const ErrorAt& error);

/// Whether a profile changes anything.
bool changes(const LinkProfile& profile);

// Failures during the step, and what happens to the tasks that use the failed parts.
//
//     failures:
//       - {link: "pod0/leaf0 - spine1", at: 3 s, then: reroute, detection: 0.2 s, until: 9 s}
//       - {device: node3/gpu5, at: 1 s, detection: 10 s}        # then: fail
//
// When a device, NIC or switch fails, all of its links fail with it; the computation of a dead
// device stands still too. Nothing reacts before `detection` has passed: with `fail`, a
// communication or kernel that has stood still for that long fails; with `reroute`, routes avoid
// the dead parts from then on.

struct Failure {
  /// Selectors (topology/select.h); exactly one of the four is given.
  std::optional<std::string> link;
  std::optional<std::string> device;
  std::optional<std::string> nic;
  std::optional<std::string> switch_name;
  Seconds at;
  std::optional<Seconds> until;  ///< Time of the repair.
  FailureReaction then = FailureReaction::kFail;
  Seconds detection{};
};

const yaml::Names<FailureReaction>& yaml_names(const FailureReaction*);
const yaml::Table<Failure>& yaml_table(const Failure*);

Status add_failures(Plan& plan, const std::vector<Failure>& failures, const ClusterView& cluster,
                    const ErrorAt& error);

// Traffic of other jobs or of storage on the cluster's links.
//
//     background:
//       - {from: node0/gpu0, to: node5/gpu0, rate: 10 GB/s}      # elastic: shares
//       - {links: "node*/nic0", rate: 5 GB/s, kind: constant,     # open loop: takes
//          start: 1 s, end: 2 s, period: 4 s}
//
// An *elastic* flow takes the max-min share of its path that `connections` connections would get
// next to the job's own, up to `rate`; congestion-controlled traffic approaches this share. A
// *constant* flow takes its rate from every link that it crosses, whatever else uses the link; the
// job shares the rest. Both are exact under the engine's max-min sharing.

enum class BackgroundKind : std::uint8_t { kElastic, kConstant };

struct Background {
  /// Selectors of devices. Equal numbers of senders and receivers are paired in order; a single
  /// sender or receiver is paired with all devices on the other side.
  std::optional<std::string> from;
  std::optional<std::string> to;
  /// Alternative to `from` and `to`: one flow over each of these links alone.
  std::optional<std::string> links;
  std::optional<BytesPerSecond> rate;
  BackgroundKind kind = BackgroundKind::kElastic;
  double connections = 1;
  Seconds start{};
  std::optional<Seconds> end;
  std::optional<Seconds> period;
};

const yaml::Names<BackgroundKind>& yaml_names(const BackgroundKind*);
const yaml::Table<Background>& yaml_table(const Background*);

Status add_background(Plan& plan, const std::vector<Background>& background,
                      const ClusterView& cluster, const ErrorAt& error);

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
