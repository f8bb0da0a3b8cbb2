/// \file
/// Links whose bandwidth changes over time.
///
///     links:
///       - {links: "node0/nic0 - *", profile: [{at: 0 s, factor: 1}, {at: 2 s, factor: 0.3}]}
///       - links: "pod0/leaf0 - spine1"                  # flaps: 10 ms of every second
///         profile: [{at: 0.5 s, factor: 0}, {at: 0.51 s, factor: 1}]
///         period: 1 s
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "base/yaml/table.h"

#include "sim/disturbance/plan.h"

namespace foreshard::disturbance {

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

}  // namespace foreshard::disturbance
