/// \file
/// The disturbances of one step on one cluster: which devices are slow, which links change when,
/// what fails. Made from a study's `disturbances` (disturbances.h), or by hand; `sim/simulate`
/// applies it.
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
#include "sim/disturbance/hit.h"
#include "topology/cluster_view.h"

namespace foreshard::disturbance {

/// What happens to the tasks that use what has failed.
enum class Then : std::uint8_t {
  kFail,     ///< Stand still; fail when `detection` is over, and with them the step.
  kReroute,  ///< Stand still until `detection` is over, then go on by other routes.
  kWait,     ///< Stand still until the repair.
};

struct Slow {
  DeviceId device;
  double speed = 1;  ///< Of the speed that the cluster gives it. Invariant: > 0.
};
struct SpeedChange {
  DeviceId device;
  Seconds at;
  double speed = 1;  ///< From then on, of what it has without. Invariant: in (0, 1].
};
/// Of a profile: from `at` on the link has this part of its bandwidth.
struct ProfilePoint {
  Seconds at;
  double factor = 1;  ///< Invariant: >= 0, finite.
};
struct Profile {
  std::vector<LinkId> links;
  std::vector<ProfilePoint> points;  ///< Times ascend.
  Seconds period = kNever;           ///< All points again, this much later.
};
struct Outage {
  std::string what;  ///< For people: "link leaf0 - spine1".
  std::vector<LinkId> links{};
  std::vector<DeviceId> devices{};
  Seconds at{};
  Seconds until = kNever;
  Then then = Then::kFail;
  Seconds detection{};
};
/// Traffic of other jobs over some links.
struct Traffic {
  std::string what;
  std::vector<RoutedLink> links{};
  /// Bytes per second: of an elastic flow, at most; of a constant one, exactly.
  BytesPerSecond rate = BytesPerSecond::from_base(std::numeric_limits<double>::infinity());
  bool constant = false;  ///< Takes its rate whatever else uses the link, instead of sharing.
  double connections = 1;
  Seconds from{};
  Seconds until = kNever;
  Seconds period = kNever;
};

struct Plan {
  std::uint64_t seed = 0;
  std::vector<Slow> slow;              ///< By device, each once.
  std::vector<SpeedChange> throttled;  ///< By device, then by time.
  std::vector<Profile> profiles;       ///< A link is in one at most.
  std::vector<Outage> outages;
  std::vector<Traffic> traffic;
  std::optional<Distribution> jitter;  ///< Of the factor on every kernel's time.
  std::vector<Hit> hits;

  /// Whether it changes nothing but the speeds of devices.
  bool only_slow() const {
    return throttled.empty() && profiles.empty() && outages.empty() && traffic.empty() && !jitter;
  }
};

/// The factor on the time of a rank's kernel, the `instance`-th task that it issues: 1 if `plan` is
/// null or has no jitter.
double kernel_factor(const Plan* plan, std::int32_t rank, std::size_t instance);

/// Makes an error of (keys below `disturbances`, message, help).
using ErrorAt = std::function<Error(const std::string&, const std::string&, const std::string&)>;

/// A copy of the cluster in which the devices of `plan.slow` are slow. Nothing if there are none.
std::optional<ClusterView> slowed(const ClusterView& cluster, const Plan& plan);

}  // namespace foreshard::disturbance
