// Writes an imported machine or cluster as YAML of ours, for `foreshard topology import`.
#include <array>
#include <charconv>

#include "base/quantity.h"
#include "base/yaml/quoted.h"

#include "topology/import/import.h"

namespace foreshard {
namespace {

template <class Q>
std::string text_of(const Q& quantity) {
  return format_exact(quantity);
}
std::string text_of(double ratio) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), ratio).ptr;
  return {digits.data(), end};
}

template <class T>
std::string text_of(const yaml::Sourced<T>& number) {
  if (number.evidence == yaml::Evidence::kUser) return text_of(*number);
  return "{value: " + text_of(*number) + ", source: " + yaml::quoted(number.source) +
         ", evidence: " + std::string(yaml::name_of(number.evidence)) + "}";
}

/// Lines of "key: value" at one depth.
class Lines {
 public:
  explicit Lines(std::size_t depth) : indent_(2 * depth, ' ') {}
  Lines& line(std::string_view key, std::string_view value = "") {
    text_ += indent_ + std::string(key) + ":" + (value.empty() ? "" : " ") + std::string(value);
    text_ += '\n';
    return *this;
  }
  template <class T>
  Lines& number(std::string_view key, const T& value) {
    return line(key, text_of(value));
  }
  /// Writes the number unless it is the reader's default.
  template <class T>
  Lines& unless_default(std::string_view key, const T& value, const T& usual) {
    return value == usual ? *this : number(key, value);
  }
  Lines& item(const std::string& text) {
    text_ += indent_ + "- " + text + '\n';
    return *this;
  }
  std::string text() const { return text_; }

 private:
  std::string indent_;
  std::string text_;
};

std::string nvlink_text(const NvlinkConfig& nvlink, std::size_t depth) {
  const NvlinkConfig usual;
  Lines lines(depth);
  if (nvlink.layout != usual.layout) lines.line("layout", yaml::name_of(nvlink.layout));
  lines.number("bandwidth", nvlink.bandwidth)
      .unless_default("efficiency", nvlink.efficiency, usual.efficiency)
      .unless_default("latency", nvlink.latency, usual.latency);
  if (nvlink.pairs.empty()) return lines.text();
  lines.line("pairs");
  Lines pairs(depth + 1);
  for (const auto& pair : nvlink.pairs)
    pairs.item("{a: " + std::to_string(pair.a) + ", b: " + std::to_string(pair.b) +
               ", links: " + std::to_string(pair.links) + "}");
  return lines.text() + pairs.text();
}

std::string pcie_text(const PcieConfig& pcie, std::size_t depth) {
  const PcieConfig usual;
  Lines lines(depth);
  if (pcie.generation) lines.line("generation", std::to_string(*pcie.generation));
  if (pcie.switches) lines.line("switches", std::to_string(*pcie.switches));
  lines.line("sockets", std::to_string(pcie.sockets));
  lines.unless_default("efficiency", pcie.efficiency, usual.efficiency)
      .unless_default("latency", pcie.latency, usual.latency)
      .unless_default("socket_bandwidth", pcie.socket_bandwidth, usual.socket_bandwidth)
      .unless_default("socket_latency", pcie.socket_latency, usual.socket_latency);
  return lines.text();
}

std::string nics_text(const NicConfig& nics, std::size_t depth) {
  const NicConfig usual;
  Lines lines(depth);
  if (nics.transport && !nics.transport->name.empty())
    lines.line("transport", nics.transport->name);
  return lines.line("count", std::to_string(nics.count))
      .number("bandwidth", nics.bandwidth)
      .unless_default("efficiency", nics.efficiency, usual.efficiency)
      .unless_default("latency", nics.latency, usual.latency)
      .text();
}

std::string wiring_text(const WiringConfig& wiring, std::size_t depth) {
  const WiringConfig usual;
  Lines lines(depth);
  lines.unless_default("nvlink_efficiency", wiring.nvlink_efficiency, usual.nvlink_efficiency)
      .unless_default("pcie_efficiency", wiring.pcie_efficiency, usual.pcie_efficiency)
      .unless_default("nic_efficiency", wiring.nic_efficiency, usual.nic_efficiency)
      .unless_default("nvlink_latency", wiring.nvlink_latency, usual.nvlink_latency)
      .unless_default("pcie_latency", wiring.pcie_latency, usual.pcie_latency)
      .unless_default("socket_latency", wiring.socket_latency, usual.socket_latency)
      .unless_default("nic_latency", wiring.nic_latency, usual.nic_latency);
  std::string text = lines.text();
  if (!wiring.parts.empty()) {
    Lines parts(depth + 1);
    for (const auto& part : wiring.parts)
      parts.item("{name: " + part.name + ", kind: " + std::string(yaml::name_of(part.kind)) +
                 (part.bandwidth ? ", bandwidth: " + text_of(*part.bandwidth) : "") + "}");
    text += Lines(depth).line("parts").text() + parts.text();
  }
  Lines links(depth + 1);
  for (const auto& link : wiring.links)
    links.item("{a: " + link.a + ", b: " + link.b +
               ", kind: " + std::string(yaml::name_of(link.kind)) +
               ", bandwidth: " + text_of(link.bandwidth) + "}");
  return text + Lines(depth).line("links").text() + links.text();
}

std::string node_text(const NodeConfig& node, std::size_t depth) {
  const NodeConfig usual;
  Lines lines(depth);
  if (!node.summary.empty()) lines.line("summary", yaml::quoted(node.summary));
  lines.line("device", node.device.name).line("gpus", std::to_string(node.gpus));
  if (node.gpus_per_tray) lines.line("gpus_per_tray", std::to_string(*node.gpus_per_tray));
  std::string text = lines.text();
  const auto section = [&](const char* key, const std::string& inside) {
    if (!inside.empty()) text += Lines(depth).line(key).text() + inside;
  };
  if (node.nvlink) section("nvlink", nvlink_text(*node.nvlink, depth + 1));
  if (!node.wiring) section("pcie", pcie_text(node.pcie, depth + 1));
  if (node.nics) section("nics", nics_text(*node.nics, depth + 1));
  if (node.wiring) section("wiring", wiring_text(*node.wiring, depth + 1));
  section("host", Lines(depth + 1)
                      .unless_default("launch_time", node.host.launch_time, usual.host.launch_time)
                      .unless_default("speed", node.host.speed, usual.host.speed)
                      .text());
  return text;
}

/// "key: name" of a catalogue entry, or the node written out.
std::string node_under(const char* key, const yaml::Ref<NodeConfig>& node, std::size_t depth) {
  if (!node.name.empty()) return Lines(depth).line(key, node.name).text();
  return Lines(depth).line(key).text() + node_text(*node, depth + 1);
}

std::string custom_text(const CustomFabricConfig& custom) {
  std::string switches;
  for (const auto& name : custom.switches)
    switches += (switches.empty() ? "" : ", ") + yaml::quoted(name);
  Lines cables(3);
  for (const auto& cable : custom.cables)
    cables.item("{a: " + yaml::quoted(cable.a) + ", b: " + yaml::quoted(cable.b) +
                (cable.bandwidth ? ", bandwidth: " + text_of(*cable.bandwidth) : "") +
                (cable.count > 1 ? ", count: " + std::to_string(cable.count) : "") + "}");
  return Lines(1).line("custom").text() +
         Lines(2).line("switches", "[" + switches + "]").line("cables").text() + cables.text();
}

std::string cluster_text(const ClusterConfig& cluster) {
  std::string text = Lines(0).line("name", yaml::quoted(cluster.name)).text();
  if (cluster.node) {
    text += Lines(0).line("nodes", std::to_string(cluster.nodes)).text() +
            node_under("node", *cluster.node, 0);
  } else {
    text += "groups:\n";
    for (const auto& group : cluster.groups)
      text +=
          "  - nodes: " + std::to_string(group.nodes) + "\n" + node_under("node", group.node, 2);
  }
  text += "fabric:\n" + Lines(1).line("kind", cluster.fabric.kind).text();
  if (cluster.fabric.custom) text += custom_text(*cluster.fabric.custom);
  return text;
}

}  // namespace

std::string to_yaml(const Imported& imported) {
  std::string text =
      "# Imported from " + yaml::quoted(imported.name) + " (" + imported.format + ").\n";
  for (const auto& remark : imported.remarks) text += yaml::comment("- " + remark);
  if (const auto* node = std::get_if<NodeConfig>(&imported.what)) return text + node_text(*node, 0);
  return text + cluster_text(std::get<ClusterConfig>(imported.what));
}

}  // namespace foreshard
