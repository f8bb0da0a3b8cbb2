#include "topology/plausibility.h"

#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "topology/internal/plausibility_rules.h"

namespace foreshard {
namespace {

constexpr std::size_t kRules = 14;

constexpr std::array<PlausibilityRule, kRules> kNames{{
    {"port-rate", "A NIC faster than any that exists, or slower than Ethernet."},
    {"nic-slot", "A NIC's port is faster than its PCIe link."},
    {"isolated", "A device or NIC that no link joins to the rest."},
    {"nvlink-rate", "NVLink faster than the device type's."},
    {"missing-nvlink", "A device with less NVLink than another one of its node."},
    {"pcie-uplink", "A way to the CPU far below the PCIe link of the device at its end."},
    {"oversubscription", "More oversubscription at a switch than is built."},
    {"switch-size", "A switch with more ports, or more throughput, than exist."},
    {"uneven-node", "Devices of one node are joined unequally."},
    {"degraded", "A factor so small that the part is broken rather than slow."},
    {"mixed-memory", "Devices of unequal memory in one cluster."},
    {"latency", "A link with a latency beyond any inside a cluster."},
    {"slow-link", "A link that hardly carries anything."},
    {"launch-time", "A host that takes unusually long to launch a kernel."},
}};

constexpr std::array<void (*)(const internal::Subject&, internal::Findings&), kRules> kLook{
    internal::find_port_rates,       internal::find_slots,           internal::find_isolated,
    internal::find_nvlinks,          internal::find_missing_nvlinks, internal::find_uplinks,
    internal::find_oversubscription, internal::find_switches,        internal::find_uneven_nodes,
    internal::find_degraded,         internal::find_mixed_memory,    internal::find_latencies,
    internal::find_slow_links,       internal::find_launch_times};

std::string_view name_of(Severity severity) {
  return severity == Severity::kWarning ? "warning" : "remark";
}

}  // namespace

std::span<const PlausibilityRule> plausibility_rules() {
  return kNames;
}

std::vector<Finding> implausible(const ClusterConfig& config, const ClusterView& cluster,
                                 const Hardware& hardware) {
  const auto subject = internal::subject_of(config, cluster, hardware);
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < kRules; ++i) {
    const std::size_t before = findings.size();
    kLook[i](subject, findings);
    for (std::size_t f = before; f < findings.size(); ++f) findings[f].rule = kNames[i].name;
  }
  return findings;
}

std::string to_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const auto& f : findings)
    text += fmt::format("{}: {}: {}: {}\n  help: {}\n", name_of(f.severity), f.rule, f.place,
                        f.message, f.remedy);
  if (findings.empty()) text = fmt::format("nothing implausible ({} rules)\n", kRules);
  return text;
}

std::string to_json(const std::vector<Finding>& findings) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& f : findings)
    list.push_back({{"severity", name_of(f.severity)},
                    {"rule", f.rule},
                    {"place", f.place},
                    {"message", f.message},
                    {"remedy", f.remedy}});
  const nlohmann::ordered_json json{{"schema", "foreshard.findings/1"},
                                    {"findings", std::move(list)}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace foreshard
