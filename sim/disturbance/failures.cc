// The `failures:` of a study's disturbances: links, devices, NICs and switches that fail within a
// step. disturbances.cc calls add_failures. Times count from the start of the step; without `until`
// nothing is repaired.
#include <algorithm>
#include <array>
#include <span>

#include "base/quantity.h"

#include "sim/disturbance/disturbances.h"
#include "sim/disturbance/internal/names.h"
#include "topology/select.h"

namespace foreshard::disturbance {
namespace {

constexpr std::array kDevices{VertexKind::kDevice};
constexpr std::array kNics{VertexKind::kNic};
constexpr std::array kSwitches{VertexKind::kSwitch, VertexKind::kNvSwitch, VertexKind::kPcieSwitch};

std::string failure_misfit(const Failure& f) {
  const int given = static_cast<int>(f.link.has_value()) + static_cast<int>(f.device.has_value()) +
                    static_cast<int>(f.nic.has_value()) +
                    static_cast<int>(f.switch_name.has_value());
  if (given != 1) return "name what fails: one of link, device, nic, switch";
  if (f.until && *f.until <= f.at)
    return "the repair (until " + format_exact(*f.until) + ") must come after the failure (at " +
           format_exact(f.at) + ")";
  if (f.then == FailureReaction::kReroute && f.device)
    return "no route leads around a dead device: set `then` to fail or wait";
  return "";
}

std::string words_of(FailureReaction then) {
  switch (then) {
    case FailureReaction::kFail:
      return "what uses it fails";
    case FailureReaction::kReroute:
      return "what uses it is rerouted";
    case FailureReaction::kWait:
      return "what uses it waits";
  }
  return "";
}

struct Selector {
  const char* key;
  const std::optional<std::string>& pattern;
  std::span<const VertexKind> kinds;  // empty: links
};

// The links of vertices, ascending.
std::vector<LinkId> links_at(const ClusterView& cluster, const std::vector<VertexId>& vertices) {
  std::vector<bool> chosen(cluster.vertices().size());
  for (const VertexId vertex : vertices) chosen[vertex.index()] = true;
  std::vector<LinkId> links;
  for (std::size_t l = 0; l < cluster.links().size(); ++l) {
    const Link& link = cluster.links()[l];
    if (chosen[link.from.index()] || chosen[link.to.index()])
      links.emplace_back(static_cast<std::int64_t>(l));
  }
  return links;
}

}  // namespace

const yaml::Names<FailureReaction>& yaml_names(const FailureReaction*) {
  static const yaml::Names<FailureReaction> names{
      {"fail", FailureReaction::kFail,
       "A task that stands still on it for longer than `detection` fails."},
      {"reroute", FailureReaction::kReroute, "After `detection`, new routes avoid it."},
      {"wait", FailureReaction::kWait, "The tasks that use it stand still until it is repaired."},
  };
  return names;
}

const yaml::Table<Failure>& yaml_table(const Failure*) {
  using F = Failure;
  static const auto table =
      yaml::Table<F>("failure", "What breaks during the step.")
          .optional("link", &F::link, "A selector of links: 'pod0/leaf0 - spine1'.",
                    yaml::non_empty())
          .optional("device", &F::device, "Or of devices, with all their links: node3/gpu5.",
                    yaml::non_empty())
          .optional("nic", &F::nic, "Or of NICs, with all their links: node3/nic0.",
                    yaml::non_empty())
          .optional("switch", &F::switch_name, "Or of switches, with all their links: spine1.",
                    yaml::non_empty())
          .required("at", &F::at, "When it fails, counted from the start of the step.",
                    yaml::non_negative())
          .optional("until", &F::until, "When it is repaired, counted likewise (default: never).",
                    yaml::non_negative())
          .optional("then", &F::then, "What happens to the tasks that use it.")
          .optional("detection", &F::detection,
                    "How long these tasks stand still before they fail or are rerouted.",
                    yaml::non_negative())
          .check("at", failure_misfit);
  return table;
}

Status add_failures(Plan& plan, const std::vector<Failure>& failures, const ClusterView& cluster,
                    const ErrorAt& error) {
  for (std::size_t i = 0; i < failures.size(); ++i) {
    const Failure& f = failures[i];
    const std::string key = "failures." + std::to_string(i);
    const std::array selectors{Selector{"link", f.link, {}}, Selector{"device", f.device, kDevices},
                               Selector{"nic", f.nic, kNics},
                               Selector{"switch", f.switch_name, kSwitches}};
    const Selector& which =
        *std::ranges::find_if(selectors, [](const Selector& s) { return s.pattern.has_value(); });
    Outage outage{.what = std::string(which.key) + " " + *which.pattern,
                  .links = {},
                  .devices = {},
                  .at = f.at,
                  .until = f.until.value_or(kNever),
                  .then = f.then,
                  .detection = f.detection};
    Hit hit{.kind = "failure",
            .effect = words_of(f.then),
            .at = f.at,
            .until = outage.until,
            .count = 0,
            .who = {}};
    if (f.then != FailureReaction::kWait && f.detection > Seconds())
      hit.effect += " after " + format_exact(f.detection);
    if (which.kinds.empty()) {
      outage.links = select_links(*which.pattern, cluster);
      hit.count = static_cast<std::int64_t>(outage.links.size());
      hit.who = internal::names_of<LinkId>(cluster, outage.links);
    } else {
      const auto vertices = select_vertices(*which.pattern, which.kinds, cluster);
      outage.links = links_at(cluster, vertices);
      hit.count = static_cast<std::int64_t>(vertices.size());
      for (const VertexId vertex : vertices) {
        const Vertex& what = cluster.vertices()[vertex.index()];
        if (what.device.valid()) outage.devices.push_back(what.device);
        if (hit.who.size() < internal::kMostNames) hit.who.push_back(what.name);
      }
    }
    if (hit.count == 0)
      return error(key + "." + which.key,
                   "'" + *which.pattern + "' matches no " + std::string(which.key),
                   internal::kNamesHelp);
    if (outage.devices.size() == cluster.devices().size() ||
        outage.links.size() == cluster.links().size())
      return error(key + "." + which.key,
                   "'" + *which.pattern + "' fails all of the cluster: nothing is left to simulate",
                   "name a part of it");
    plan.hits.push_back(std::move(hit));
    plan.outages.push_back(std::move(outage));
  }
  return {};
}

}  // namespace foreshard::disturbance
