/// \file
/// The disturbances of one step on one cluster: which devices are slow, which links change when,
/// what fails. A plan is made from a study's `disturbances` (disturbances.h) or by hand;
/// `sim/simulate` applies it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "sim/disturbance/distribution.h"
#include "topology/cluster_view.h"

namespace foreshard::disturbance {

/// Every period costs the simulation one event or more: with this period a step of 10 s has
/// millions of events; with some nanoseconds it would not end. To flows that take longer, a faster
/// change is just a mean bandwidth.
inline constexpr Seconds kShortestPeriod = Seconds::from_base(1e-6);

inline constexpr Seconds kNever = Seconds::from_base(std::numeric_limits<double>::infinity());

/// One disturbance and the parts that it affects.
struct Hit {
  std::string kind;    ///< "straggler", "link", "failure", "background", "jitter".
  std::string effect;  ///< Text for people: "80 % of its speed".
  Seconds at{};
  Seconds until = kNever;
  std::int64_t count = 0;        ///< Number of affected parts.
  std::vector<std::string> who;  ///< Names of the first affected parts.
};

/// What happens to the tasks that use what has failed.
enum class FailureReaction : std::uint8_t {
  kFail,     ///< They stand still, and fail when `detection` is over; the step fails with them.
  kReroute,  ///< They stand still until `detection` is over, then go on by other routes.
  kWait,     ///< They stand still until the repair.
};

struct SlowDevice {
  DeviceId device;
  double speed = 1;  ///< Share of the speed that the cluster gives the device. Invariant: > 0.
};
struct SpeedChange {
  DeviceId device;
  Seconds at;
  /// Share of its undisturbed speed that the device has from `at` on. Invariant: in (0, 1].
  double speed = 1;
};
/// A point of a profile: from `at` on, the link has this share of its bandwidth.
struct ProfilePoint {
  Seconds at;
  double factor = 1;  ///< Invariant: >= 0, finite.
};
struct Profile {
  std::vector<LinkId> links;
  std::vector<ProfilePoint> points;  ///< Ascending times.
  Seconds period = kNever;           ///< Time after which all points repeat.
};
struct Outage {
  std::string what;  ///< Text for people: "link leaf0 - spine1".
  std::vector<LinkId> links{};
  std::vector<DeviceId> devices{};
  Seconds at{};
  Seconds until = kNever;
  FailureReaction then = FailureReaction::kFail;
  Seconds detection{};
};
/// Traffic of other jobs over some links.
struct Traffic {
  std::string what;
  std::vector<RoutedLink> links{};
  /// Maximum of an elastic flow, exact rate of a constant one.
  BytesPerSecond rate = BytesPerSecond::from_base(std::numeric_limits<double>::infinity());
  /// Whether the flow takes its rate whatever else uses the link, instead of sharing the link.
  bool constant = false;
  double connections = 1;
  Seconds from{};
  Seconds until = kNever;
  Seconds period = kNever;
};

struct Plan {
  std::uint64_t seed = 0;
  std::vector<SlowDevice> slow;        ///< Sorted by device, each device once.
  std::vector<SpeedChange> throttled;  ///< Sorted by device, then by time.
  std::vector<Profile> profiles;       ///< Each link is in at most one profile.
  std::vector<Outage> outages;
  std::vector<Traffic> traffic;
  std::optional<Distribution> jitter;  ///< Distribution of the factor on every kernel's time.
  std::vector<Hit> hits;

  /// Whether the plan changes nothing but constant speeds of devices.
  bool only_slow() const {
    return throttled.empty() && profiles.empty() && outages.empty() && traffic.empty() && !jitter;
  }
};

/// The factor on the time of the kernel that is task `instance` of rank `rank`: 1 if `plan` is null
/// or has no jitter.
double kernel_factor(const Plan* plan, std::int32_t rank, std::size_t instance);

/// Makes an error from (keys below `disturbances`, message, help).
using ErrorAt = std::function<Error(const std::string&, const std::string&, const std::string&)>;

/// A copy of the cluster in which the devices of `plan.slow` are slow; nothing if there are none.
std::optional<ClusterView> slowed(const ClusterView& cluster, const Plan& plan);

}  // namespace foreshard::disturbance
