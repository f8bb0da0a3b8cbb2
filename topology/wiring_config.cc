#include "topology/wiring_config.h"

#include <fmt/format.h>
#include <set>

namespace foreshard {

std::string fault_in(const WiringConfig& wiring, std::int64_t gpus) {
  std::set<std::string> names;
  std::set<std::string> unlinked_nics;
  for (std::int64_t i = 0; i < gpus; ++i) names.insert("gpu" + std::to_string(i));
  for (const auto& part : wiring.parts) {
    if (!names.insert(part.name).second) return "part '" + part.name + "' is there twice";
    if (part.name.find('/') != std::string::npos)
      return "part '" + part.name + "': names have no '/'";
    const bool nic = part.kind == WiringPartKind::kNic;
    if (nic && !part.bandwidth)
      return "NIC '" + part.name + "' has no bandwidth: give that of its port to the network";
    if (!nic && part.bandwidth)
      return "part '" + part.name + "' has a bandwidth, but only NICs have ports to the network";
    if (nic) unlinked_nics.insert(part.name);
  }
  for (const auto& link : wiring.links) {
    const std::string name = "link " + link.a + " - " + link.b;
    for (const auto& end : {link.a, link.b})
      if (!names.contains(end))
        return fmt::format(
            "{}: there is no '{}' (GPUs are gpu0 to gpu{}; anything else is listed under parts)",
            name, end, gpus - 1);
    if (link.a == link.b) return name + " joins a part to itself";
    unlinked_nics.erase(link.a);
    unlinked_nics.erase(link.b);
  }
  if (!unlinked_nics.empty()) return "NIC '" + *unlinked_nics.begin() + "' has no link";
  return "";
}

const yaml::Names<WiringPartKind>& yaml_names(const WiringPartKind*) {
  static const yaml::Names<WiringPartKind> names{
      {"nvswitch", WiringPartKind::kNvSwitch, "A switch of NVLinks."},
      {"pcie-switch", WiringPartKind::kPcieSwitch, "A PCIe switch or bridge."},
      {"socket", WiringPartKind::kSocket, "A CPU socket (or NUMA domain) with its root ports."},
      {"nic", WiringPartKind::kNic, "A network adapter."},
  };
  return names;
}

const yaml::Names<WiringLinkKind>& yaml_names(const WiringLinkKind*) {
  static const yaml::Names<WiringLinkKind> names{
      {"nvlink", WiringLinkKind::kNvLink, "NVLinks, those between the same ends as one."},
      {"pcie", WiringLinkKind::kPcie, "A PCIe connection."},
      {"socket", WiringLinkKind::kSocket, "Between CPU sockets; its rate is the payload rate."},
  };
  return names;
}

const yaml::Table<WiringPart>& yaml_table(const WiringPart*) {
  static const auto table =
      yaml::Table<WiringPart>("part", "Anything in a host but a GPU.")
          .required("name", &WiringPart::name, "Name, which links refer to.", yaml::non_empty())
          .required("kind", &WiringPart::kind, "Its kind.")
          .optional("bandwidth", &WiringPart::bandwidth,
                    "Of a NIC: nominal rate of one direction of its port to the network.",
                    yaml::positive());
  return table;
}

const yaml::Table<WiringLink>& yaml_table(const WiringLink*) {
  static const auto table =
      yaml::Table<WiringLink>("link", "Both directions of one connection inside a host.")
          .required("a", &WiringLink::a, "One end: a part or gpu0, gpu1, ...", yaml::non_empty())
          .required("b", &WiringLink::b, "The other end.", yaml::non_empty())
          .required("kind", &WiringLink::kind, "Its kind.")
          .required("bandwidth", &WiringLink::bandwidth,
                    "Nominal rate of one direction of all its lanes or links together.",
                    yaml::positive());
  return table;
}

const yaml::Table<WiringConfig>& yaml_table(const WiringConfig*) {
  using W = WiringConfig;
  static const auto table =
      yaml::Table<W>("wiring", "A host link by link, instead of nvlink, pcie and nics.")
          .optional("parts", &W::parts,
                    "Everything besides the GPUs; NICs in the order of their rails.")
          .required("links", &W::links, "The connections between parts and GPUs.",
                    yaml::non_empty())
          .optional("nvlink_efficiency", &W::nvlink_efficiency,
                    "Payload rate of long transfers over NVLink, as a part of the nominal rate.",
                    yaml::positive(), yaml::at_most(1.0))
          .optional("pcie_efficiency", &W::pcie_efficiency, "The same for PCIe.", yaml::positive(),
                    yaml::at_most(1.0))
          .optional("nic_efficiency", &W::nic_efficiency, "The same for the ports of the NICs.",
                    yaml::positive(), yaml::at_most(1.0))
          .optional("nvlink_latency", &W::nvlink_latency, "Latency of one NVLink.",
                    yaml::non_negative())
          .optional("pcie_latency", &W::pcie_latency, "Latency of one PCIe hop.",
                    yaml::non_negative())
          .optional("socket_latency", &W::socket_latency, "Latency between two sockets.",
                    yaml::non_negative())
          .optional("nic_latency", &W::nic_latency, "Latency of one adapter.",
                    yaml::non_negative());
  return table;
}

}  // namespace foreshard
