// The `background:` of a study's disturbances: traffic of other jobs. disturbances.cc calls
// add_background. Rates are bytes per second, times count from the start of the step; a selector
// that matches nothing, and constant flows that together exceed a link, are errors with their key.
#include <algorithm>

#include "base/quantity.h"

#include "sim/disturbance/disturbances.h"
#include "sim/disturbance/internal/names.h"
#include "sim/disturbance/plan.h"
#include "topology/select.h"

namespace foreshard::disturbance {
namespace {

std::string traffic_misfit(const Background& b) {
  const bool path = b.from.has_value() && b.to.has_value();
  if (b.from.has_value() != b.to.has_value()) return "from and to belong together";
  if (path == b.links.has_value()) return "give either from and to, or links";
  if (b.kind == BackgroundKind::kConstant && !b.rate) return "constant traffic needs a rate";
  if (b.end && *b.end <= b.start) return "end must be after start";
  if (b.period && !b.end) return "traffic that comes again needs an end";
  if (b.period && *b.end - b.start > *b.period)
    return "it lasts " + format_exact(*b.end - b.start) + ", longer than its period of " +
           format_exact(*b.period);
  return "";
}

struct Pair {
  DeviceId from;
  DeviceId to;
};

Traffic traffic_of(const Background& b) {
  Traffic traffic;
  if (b.rate) traffic.rate = *b.rate;
  traffic.constant = b.kind == BackgroundKind::kConstant;
  traffic.connections = b.connections;
  traffic.from = b.start;
  traffic.until = b.end.value_or(kNever);
  traffic.period = b.period.value_or(kNever);
  return traffic;
}

// An error if constant traffic exceeds the bandwidth of a link that it crosses.
Status excess(const std::vector<Traffic>& flows, const ClusterView& cluster, const std::string& key,
              const ErrorAt& error) {
  for (const Traffic& flow : flows) {
    if (!flow.constant) continue;
    for (const RoutedLink& use : flow.links) {
      const auto bandwidth = cluster.links()[use.link.index()].bandwidth;
      if (!(flow.rate * use.share > bandwidth)) continue;
      return error(key + ".rate",
                   "more than " + internal::name_of(cluster, use.link) + " can carry, " +
                       format_exact(bandwidth),
                   "choose less; a link on which nothing passes has a profile with factor 0");
    }
  }
  return {};
}

Result<std::vector<Traffic>> over_links(const Background& b, const ClusterView& cluster,
                                        const std::string& key, const ErrorAt& error) {
  const auto links = select_links(*b.links, cluster);
  if (links.empty())
    return error(key + ".links", "'" + *b.links + "' matches no link", internal::kNamesHelp);
  std::vector<Traffic> all;
  for (const LinkId link : links) {
    Traffic one = traffic_of(b);
    one.what = internal::name_of(cluster, link);
    one.links = {{.link = link}};
    all.push_back(std::move(one));
  }
  return all;
}

Result<std::vector<Traffic>> between_devices(const Background& b, const ClusterView& cluster,
                                             const std::string& key, const ErrorAt& error) {
  const auto from = select_devices(*b.from, cluster);
  const auto to = select_devices(*b.to, cluster);
  if (from.empty())
    return error(key + ".from", "'" + *b.from + "' matches no device", internal::kNamesHelp);
  if (to.empty())
    return error(key + ".to", "'" + *b.to + "' matches no device", internal::kNamesHelp);
  if (from.size() != to.size() && from.size() != 1 && to.size() != 1)
    return error(key + ".to",
                 std::to_string(from.size()) + " senders and " + std::to_string(to.size()) +
                     " receivers make no pairs",
                 "choose as many of both, or one of either");
  std::vector<Traffic> all;
  for (std::size_t i = 0; i < std::max(from.size(), to.size()); ++i) {
    const Pair pair{from[from.size() == 1 ? 0 : i], to[to.size() == 1 ? 0 : i]};
    if (pair.from == pair.to) continue;
    const auto route = cluster.route(pair.from, pair.to, i);
    if (!route) return error(key + ".to", route.error().message, "");
    Traffic one = traffic_of(b);
    one.what = internal::name_of(cluster, pair.from) + " to " + internal::name_of(cluster, pair.to);
    one.links = route->links;
    all.push_back(std::move(one));
  }
  if (all.empty()) return error(key + ".to", "sender and receiver are one device", "");
  return all;
}

}  // namespace

const yaml::Names<BackgroundKind>& yaml_names(const BackgroundKind*) {
  static const yaml::Names<BackgroundKind> names{
      {"elastic", BackgroundKind::kElastic, "The flows share links with the job, up to `rate`."},
      {"constant", BackgroundKind::kConstant,
       "The flows take `rate` from the links whatever else uses them."},
  };
  return names;
}

const yaml::Table<Background>& yaml_table(const Background*) {
  using B = Background;
  static const auto table =
      yaml::Table<B>("background", "Traffic of other jobs.")
          .optional("from", &B::from, "The senders: a selector of devices.", yaml::non_empty())
          .optional("to", &B::to, "The receivers: as many devices as senders, or one.",
                    yaml::non_empty())
          .optional("links", &B::links,
                    "Instead of `from` and `to`: a selector of links, each of which carries a flow "
                    "of its own.",
                    yaml::non_empty())
          .optional("rate", &B::rate,
                    "Rate of each flow: the maximum of an elastic flow, the exact rate of a "
                    "constant one.",
                    yaml::positive())
          .optional("kind", &B::kind, "How the flows share links with the job.")
          .optional("connections", &B::connections,
                    "Weight of an elastic flow, compared with the job's channels and queue pairs.",
                    yaml::positive())
          .optional("start", &B::start,
                    "When the traffic starts, counted from the start of the step.",
                    yaml::non_negative())
          .optional("end", &B::end, "When it ends (default: never).", yaml::non_negative())
          .optional("period", &B::period, "The traffic repeats after this time.",
                    yaml::at_least(kShortestPeriod))
          .check("from", traffic_misfit);
  return table;
}

Status add_background(Plan& plan, const std::vector<Background>& background,
                      const ClusterView& cluster, const ErrorAt& error) {
  for (std::size_t i = 0; i < background.size(); ++i) {
    const Background& b = background[i];
    const std::string key = "background." + std::to_string(i);
    auto flows =
        b.links ? over_links(b, cluster, key, error) : between_devices(b, cluster, key, error);
    if (!flows) return flows.error();
    FORESHARD_TRY(excess(*flows, cluster, key, error));
    const std::string rate = b.rate ? format_exact(*b.rate) : "as much as they get";
    Hit hit{.kind = "background",
            .effect = b.kind == BackgroundKind::kConstant ? "takes " + rate
                      : b.rate                            ? "shares, up to " + rate
                                                          : "shares, " + rate,
            .at = b.start,
            .until = b.end.value_or(kNever),
            .count = static_cast<std::int64_t>(flows->size()),
            .who = {}};
    for (const Traffic& flow : *flows) {
      if (hit.who.size() == internal::kMostNames) break;
      hit.who.push_back(flow.what);
    }
    plan.hits.push_back(std::move(hit));
    plan.traffic.insert(plan.traffic.end(), flows->begin(), flows->end());
  }
  return {};
}

}  // namespace foreshard::disturbance
