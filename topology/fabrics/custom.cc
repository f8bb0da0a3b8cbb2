// Cables are resolved to pairs of ends first; faults and wiring are then read off the same list.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <variant>

#include "base/limits.h"
#include "base/quantity.h"

#include "topology/fabrics/fabric.h"
#include "topology/internal/hostlist.h"
#include "topology/select.h"

namespace foreshard {
namespace {

/// A switch or a port, by its index in the config or the plan.
struct End {
  bool is_switch = false;
  std::size_t index = 0;
  auto operator<=>(const End&) const = default;
};

struct Cable {
  End a;
  End b;
  std::size_t line = 0;  ///< Index in CustomFabricConfig::cables.
};

std::string name_of(const End& end, const FabricPlan& plan) {
  return end.is_switch ? plan.config.custom->switches[end.index] : plan.ports[end.index].name;
}

using Names = std::map<std::string_view, End>;

Names names_of(const FabricPlan& plan) {
  Names names;
  const auto& switches = plan.config.custom->switches;
  for (std::size_t i = 0; i < switches.size(); ++i) names.try_emplace(switches[i], End{true, i});
  for (std::size_t i = 0; i < plan.ports.size(); ++i)
    names.try_emplace(plan.ports[i].name, End{false, i});
  return names;
}

/// The ends that a selector names, ascending, or what is wrong.
std::variant<std::vector<End>, std::string> ends_of(const std::string& selector,
                                                    const Names& names) {
  std::vector<End> ends;
  if (selector.find_first_of("*?") != std::string::npos) {
    for (const auto& [name, end] : names)
      if (internal::matches(selector, name)) ends.push_back(end);
    if (ends.empty()) return "'" + selector + "' is neither a switch nor a NIC";
  } else {
    const auto list = internal::expand_hostlist(selector, limits::raised(limits::kEnds));
    if (const auto* why = std::get_if<std::string>(&list)) return *why;
    for (const auto& name : std::get<std::vector<std::string>>(list)) {
      const auto found = names.find(name);
      if (found == names.end()) return "'" + name + "' is neither a switch nor a NIC";
      ends.push_back(found->second);
    }
  }
  std::ranges::sort(ends);
  return ends;
}

/// All cables, or what is wrong with their ends.
std::variant<std::vector<Cable>, FabricFault> resolve(const FabricPlan& plan) {
  const auto& config = *plan.config.custom;
  std::vector<Cable> cables;
  const Names names = names_of(plan);
  std::map<std::pair<End, End>, std::size_t> lines;
  for (std::size_t line = 0; line < config.cables.size(); ++line) {
    const std::string at = "custom.cables." + std::to_string(line);
    const auto first = ends_of(config.cables[line].a, names);
    const auto second = ends_of(config.cables[line].b, names);
    for (const auto& [ends, key] : {std::pair{&first, ".a"}, {&second, ".b"}})
      if (const auto* why = std::get_if<std::string>(ends))
        return FabricFault{
            at + key, *why,
            "switches are those listed; NICs are called node0/nic0, node0/nic1, ..."};
    for (const auto& a : std::get<std::vector<End>>(first))
      for (const auto& b : std::get<std::vector<End>>(second)) {
        if (a == b)
          return FabricFault{at, "joins " + name_of(a, plan) + " to itself", "name two ends"};
        const auto [slot, added] = lines.try_emplace({std::min(a, b), std::max(a, b)}, line);
        if (!added)
          return FabricFault{at,
                             name_of(a, plan) + " and " + name_of(b, plan) +
                                 " are already joined by cables." + std::to_string(slot->second),
                             "for several cables side by side write count: 2"};
        cables.push_back({a, b, line});
      }
  }
  return cables;
}

/// The cables of one port: how many in all, how many without a rate, and the sum of the others'
/// rates.
struct PortUse {
  double cables = 0;
  double without_rate = 0;
  BytesPerSecond taken;
};

std::vector<PortUse> port_uses(const FabricPlan& plan, const std::vector<Cable>& cables) {
  std::vector<PortUse> uses(plan.ports.size());
  for (const auto& cable : cables) {
    const CableConfig& config = plan.config.custom->cables[cable.line];
    for (const End& end : {cable.a, cable.b}) {
      if (end.is_switch) continue;
      PortUse& use = uses[end.index];
      const auto count = static_cast<double>(config.count);
      use.cables += count;
      if (config.bandwidth) {
        use.taken += count * *config.bandwidth;
      } else {
        use.without_rate += count;
      }
    }
  }
  return uses;
}

std::optional<FabricFault> fault_in_switch_names(const FabricPlan& plan) {
  const auto& switches = plan.config.custom->switches;
  std::set<std::string> names;
  for (const auto& port : plan.ports) names.insert(port.name);
  for (std::size_t i = 0; i < switches.size(); ++i) {
    const std::string at = "custom.switches." + std::to_string(i);
    if (switches[i].find_first_of("*?[], ") != std::string::npos)
      return FabricFault{at, "'" + switches[i] + "' cannot be a name",
                         "*, ?, [], commas and spaces have a meaning in selectors"};
    if (!names.insert(switches[i]).second)
      return FabricFault{at, "'" + switches[i] + "' is already the name of a switch or NIC",
                         "every switch needs a name of its own"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<FabricFault> fault_in_custom(const FabricPlan& plan) {
  if (!plan.config.custom)
    return FabricFault{"kind", "a custom fabric needs its cables",
                       "add custom: {switches: [...], cables: [{a: ..., b: ...}]}"};
  if (auto fault = fault_in_switch_names(plan)) return fault;
  const auto resolved = resolve(plan);
  if (const auto* fault = std::get_if<FabricFault>(&resolved)) return *fault;
  const auto& cables = std::get<std::vector<Cable>>(resolved);
  const auto uses = port_uses(plan, cables);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const auto& [count, without_rate, taken] = uses[i];
    const auto& port = plan.ports[i];
    if (count == 0)
      return FabricFault{"custom.cables", port.name + " has no cable",
                         "every NIC needs one: {a: " + port.name + ", b: <a switch>}"};
    constexpr double kRounding = 1 + 1e-9;
    if (taken > kRounding * port.bandwidth || (without_rate > 0 && taken >= port.bandwidth))
      return FabricFault{"custom.cables",
                         "the cables of " + port.name + " carry " + format(taken) +
                             (without_rate > 0 ? " and more" : "") + ", the NIC itself " +
                             format(port.bandwidth),
                         "leave out their bandwidth: they then share the NIC's"};
  }
  return std::nullopt;
}

void build_custom(ClusterView::Builder& builder, const FabricPlan& plan) {
  const auto& config = *plan.config.custom;
  std::vector<VertexId> switches;
  for (const auto& name : config.switches)
    switches.push_back(builder.add_vertex(VertexKind::kSwitch, name));
  const auto cables = std::get<std::vector<Cable>>(resolve(plan));
  const auto uses = port_uses(plan, cables);
  const Seconds latency = *plan.config.latency;
  const BytesPerSecond fastest = plan.fastest_port();
  for (const auto& cable : cables) {
    const CableConfig& line = config.cables[cable.line];
    DuplexLink link{LinkKind::kNetwork, line.bandwidth.value_or(fastest), Seconds()};
    for (const End& end : {cable.a, cable.b}) {
      if (end.is_switch) {
        link.latency += 0.5 * latency;
        continue;
      }
      const FabricPort& port = plan.ports[end.index];
      link.latency += port.latency;
      link.efficiency = std::min(link.efficiency, port.efficiency);
      if (!line.bandwidth)
        link.bandwidth = std::min(link.bandwidth, (port.bandwidth - uses[end.index].taken) /
                                                      uses[end.index].without_rate);
    }
    const auto vertex = [&](const End& end) {
      return end.is_switch ? switches[end.index] : plan.ports[end.index].nic;
    };
    for (std::int64_t i = 0; i < line.count; ++i)
      builder.connect(vertex(cable.a), vertex(cable.b), link);
  }
}

}  // namespace foreshard
