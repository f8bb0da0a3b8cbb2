// The `stragglers:` of a study's disturbances: devices that are slower than their type, always or
// for a while. disturbances.cc calls add_stragglers. Speeds are parts of the device's own speed,
// times count from the start of the step; a fraction picks among the job's devices, by the seed.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/disturbance/distribution.h"
#include "sim/disturbance/disturbances.h"
#include "sim/disturbance/internal/names.h"
#include "topology/select.h"

namespace foreshard::disturbance {
namespace {

std::string straggler_misfit(const Straggler& s) {
  if (s.speed.has_value() == s.distribution.has_value()) return "give either speed or distribution";
  if (s.until && *s.until <= s.at) return "until must be after at";
  const bool always = s.at == Seconds() && !s.until;
  if (!always && s.distribution) return "a distribution holds for the whole step: no at or until";
  return "";
}

std::vector<DeviceId> chosen(const Straggler& s, std::uint64_t seed, std::uint64_t entry,
                             std::vector<DeviceId> devices) {
  if (!s.fraction) return devices;
  if (devices.empty()) return devices;
  const auto count =
      std::max<std::int64_t>(1, std::llround(*s.fraction * static_cast<double>(devices.size())));
  std::ranges::sort(devices, {}, [&](DeviceId d) {
    return std::pair(key_of(seed, kChoice, entry, d.index()), d);
  });
  devices.resize(static_cast<std::size_t>(count));
  std::ranges::sort(devices);
  return devices;
}

struct Interval {
  Seconds at;
  Seconds until;
  double speed;
};

// Speeds of overlapping intervals multiply.
void add_changes(Plan& plan, DeviceId device, const std::vector<Interval>& intervals) {
  std::vector<Seconds> times;
  for (const Interval& interval : intervals) {
    times.push_back(interval.at);
    if (interval.until < kNever) times.push_back(interval.until);
  }
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  for (const Seconds time : times) {
    double speed = 1;
    for (const Interval& interval : intervals)
      if (interval.at <= time && time < interval.until) speed *= interval.speed;
    plan.throttled.push_back({.device = device, .at = time, .speed = speed});
  }
}

}  // namespace

const yaml::Table<Straggler>& yaml_table(const Straggler*) {
  using S = Straggler;
  static const auto table =
      yaml::Table<S>("straggler", "Devices that are slower than their type.")
          .optional("devices", &S::devices, "A selector: node3/gpu5, node*/gpu0, ...",
                    yaml::non_empty())
          .optional("fraction", &S::fraction,
                    "Part of these devices that are slow, chosen by the seed; at least one.",
                    yaml::positive(), yaml::at_most(1.0))
          .optional("speed", &S::speed, "Part of its speed that each device keeps.",
                    yaml::positive(), yaml::at_most(1.0))
          .optional("distribution", &S::distribution,
                    "Instead of `speed`: the distribution from which each device's speed is drawn.")
          .optional("at", &S::at,
                    "When the devices become slow, counted from the start of the step (default: at "
                    "once).",
                    yaml::non_negative())
          .optional("until", &S::until, "When they are as fast as before again (default: never).",
                    yaml::non_negative())
          .check("devices", straggler_misfit);
  return table;
}

Status add_stragglers(Plan& plan, const std::vector<Straggler>& stragglers,
                      const ClusterView& cluster, std::span<const std::int32_t> used,
                      const ErrorAt& error) {
  const std::set<std::int64_t> of_job(used.begin(), used.end());
  std::map<DeviceId, double> speed_of;
  std::map<DeviceId, std::vector<Interval>> intervals_of;
  for (std::size_t i = 0; i < stragglers.size(); ++i) {
    const Straggler& s = stragglers[i];
    const std::string key = "stragglers." + std::to_string(i);
    auto matched = select_devices(s.devices, cluster);
    if (matched.empty())
      return error(key + ".devices", "'" + s.devices + "' matches no device", internal::kNamesHelp);
    if (s.fraction)
      std::erase_if(matched, [&](DeviceId device) { return !of_job.contains(device.value()); });
    auto devices = chosen(s, plan.seed, i, std::move(matched));
    if (s.speed == 1.0) continue;  // no device is slow
    Hit hit{.kind = "straggler",
            .effect = {},
            .at = s.at,
            .until = s.until.value_or(kNever),
            .count = static_cast<std::int64_t>(devices.size()),
            .who = {}};
    if (s.distribution) {
      std::vector<std::pair<double, DeviceId>> drawn;
      for (const DeviceId device : devices) {
        const double speed = sample(*s.distribution, key_of(plan.seed, kSpeed, i, device.index()));
        speed_of.try_emplace(device, 1).first->second *= speed;
        drawn.emplace_back(speed, device);
      }
      std::ranges::sort(drawn);
      hit.effect = "speeds from " + internal::percent(drawn.front().first) + " to " +
                   internal::percent(drawn.back().first);
      devices.clear();
      for (const auto& [speed, device] : drawn) devices.push_back(device);
    } else {
      hit.effect = internal::percent(*s.speed) + " of the speed";
      for (const DeviceId device : devices) {
        if (s.at == Seconds() && !s.until)
          speed_of.try_emplace(device, 1).first->second *= *s.speed;
        else
          intervals_of[device].push_back({s.at, s.until.value_or(kNever), *s.speed});
      }
    }
    hit.who = internal::names_of<DeviceId>(cluster, devices);
    plan.hits.push_back(std::move(hit));
  }
  for (const auto& [device, speed] : speed_of)
    if (speed != 1) plan.slow.push_back({.device = device, .speed = speed});
  for (const auto& [device, intervals] : intervals_of) add_changes(plan, device, intervals);
  return {};
}

}  // namespace foreshard::disturbance
