// The `links:` of a study's disturbances: bandwidths that change over time. disturbances.cc calls
// add_link_profiles. Times count from the start of the step, factors are parts of the bandwidth; a
// link may be in one profile only.
#include <algorithm>
#include <map>

#include "base/quantity.h"

#include "sim/disturbance/disturbances.h"
#include "sim/disturbance/internal/names.h"
#include "sim/disturbance/plan.h"
#include "topology/select.h"

namespace foreshard::disturbance {
namespace {

std::string profile_misfit(const LinkProfile& p) {
  if (p.profile.empty()) return "has no points";
  for (std::size_t i = 1; i < p.profile.size(); ++i) {
    if (p.profile[i].at <= p.profile[i - 1].at)
      return "times must ascend: " + format_exact(p.profile[i].at) + " comes after " +
             format_exact(p.profile[i - 1].at);
  }
  if (p.period && *p.period <= p.profile.back().at - p.profile.front().at)
    return "the points span " + format_exact(p.profile.back().at - p.profile.front().at) +
           ", which does not fit into the period of " + format_exact(*p.period);
  return "";
}

}  // namespace

const yaml::Table<ProfilePoint>& yaml_table(const ProfilePoint*) {
  using P = ProfilePoint;
  static const auto table =
      yaml::Table<P>("profile point", "The part of its bandwidth that a link has from a time on.")
          .required("at", &P::at, "When this factor begins, counted from the start of the step.",
                    yaml::non_negative())
          .required("factor", &P::factor, "Part of the bandwidth that is left; 0: nothing passes.",
                    yaml::non_negative(), yaml::at_most(1.0));
  return table;
}

const yaml::Table<LinkProfile>& yaml_table(const LinkProfile*) {
  using P = LinkProfile;
  static const auto table =
      yaml::Table<P>("link profile", "Links whose bandwidth changes over time.")
          .required("links", &P::links,
                    "A selector: 'node3/nic0' is every link of that vertex, 'node3/nic0 - "
                    "pod0/leaf0' those between two.",
                    yaml::non_empty())
          .required("profile", &P::profile,
                    "The points in time at which the bandwidth changes; before the first one the "
                    "link has all of it.",
                    yaml::non_empty())
          .optional("period", &P::period, "The points repeat after this time.",
                    yaml::at_least(kShortestPeriod))
          .check("profile", profile_misfit);
  return table;
}

bool changes(const LinkProfile& profile) {
  return std::ranges::any_of(profile.profile,
                             [](const ProfilePoint& point) { return point.factor != 1; });
}

Status add_link_profiles(Plan& plan, const std::vector<LinkProfile>& profiles,
                         const ClusterView& cluster, const ErrorAt& error) {
  std::map<LinkId, std::size_t> profile_of;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const LinkProfile& p = profiles[i];
    const std::string key = "links." + std::to_string(i);
    const auto links = select_links(p.links, cluster);
    if (links.empty())
      return error(key + ".links", "'" + p.links + "' matches no link", internal::kNamesHelp);
    for (const LinkId link : links) {
      const auto [known, added] = profile_of.emplace(link, i);
      if (!added)
        return error(key + ".links",
                     internal::name_of(cluster, link) + " has a profile already: the " +
                         std::to_string(known->second + 1) + ". of the list",
                     "write one profile that covers both");
    }
    if (!changes(p)) continue;
    double least = 1;
    for (const ProfilePoint& point : p.profile) least = std::min(least, point.factor);
    plan.hits.push_back({.kind = "link",
                         .effect = "down to " + internal::percent(least) + " of the bandwidth" +
                                   (p.period ? ", every " + format_exact(*p.period) : ""),
                         .at = p.profile.front().at,
                         .until = kNever,
                         .count = static_cast<std::int64_t>(links.size()),
                         .who = internal::names_of<LinkId>(cluster, links)});
    plan.profiles.push_back(
        {.links = links, .points = p.profile, .period = p.period.value_or(kNever)});
  }
  return {};
}

}  // namespace foreshard::disturbance
