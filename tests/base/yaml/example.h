/// \file
/// Types with tables for the tests: one member of every kind.
#pragma once

#include "base/yaml/table.h"
#include "tests/test.h"

namespace foreshard::example {

enum class Fabric { kSingleSwitch, kRailFatTree };
inline const yaml::Names<Fabric>& yaml_names(const Fabric*) {
  static const yaml::Names<Fabric> names{
      {"single-switch", Fabric::kSingleSwitch, "All ports on one crossbar."},
      {"rail-fat-tree", Fabric::kRailFatTree, "One tree for each local rank."},
  };
  return names;
}

struct Nic {
  BytesPerSecond bandwidth;
  Seconds latency = 1_us;
  std::int64_t count = 1;
};
inline const yaml::Table<Nic>& yaml_table(const Nic*) {
  static const auto table =
      yaml::Table<Nic>("nic", "A network adapter of a node.")
          .required("bandwidth", &Nic::bandwidth, "Payload rate of one direction.",
                    yaml::positive())
          .optional("latency", &Nic::latency, "Of one message's first byte.", yaml::non_negative())
          .optional("count", &Nic::count, "How many of them.", yaml::at_least(1));
  return table;
}

struct Device {
  yaml::Sourced<FlopsPerSecond> peak{.value = 1_TFLOP_s};
  yaml::Sourced<Bytes> memory{.value = 1_GiB};
  std::optional<Watts> power;
};
inline const yaml::Table<Device>& yaml_table(const Device*) {
  static const auto table =
      yaml::Table<Device>("device", "An accelerator.")
          .folder("devices")
          .required("peak", &Device::peak, "Dense bf16 rate.", yaml::positive())
          .required("memory", &Device::memory, "Of one device.", yaml::positive())
          .optional("power", &Device::power, "Under load.", yaml::positive());
  return table;
}

struct Cluster {
  std::string name;
  std::int64_t nodes = 1;
  std::int32_t radix = 64;
  Fabric fabric = Fabric::kSingleSwitch;
  bool shared = false;
  double oversubscription = 1.0;
  yaml::Ref<Device> device;
  std::vector<Nic> nics;
  std::vector<std::string> tags;
  std::map<std::string, double> weights;
  std::optional<Nic> storage;
  std::string tier = "gold";
};
inline const yaml::Table<Cluster>& yaml_table(const Cluster*) {
  static const auto table =
      yaml::Table<Cluster>("cluster", "Nodes and what joins them.")
          .folder("clusters")
          .required("name", &Cluster::name, "For reports.", yaml::non_empty())
          .optional("nodes", &Cluster::nodes, "How many.", yaml::between(1, 100000))
          .optional("radix", &Cluster::radix, "Ports of a switch.")
          .optional("fabric", &Cluster::fabric, "What joins the nodes.")
          .optional("shared", &Cluster::shared, "Whether others use it too.")
          .optional("oversubscription", &Cluster::oversubscription, "Down over up.",
                    yaml::at_least(1))
          .optional("device", &Cluster::device, "In each node.")
          .optional("nics", &Cluster::nics, "Of a node.")
          .optional("tags", &Cluster::tags, "Free words.")
          .optional("weights", &Cluster::weights, "By name.", yaml::at_most(1))
          .optional("storage", &Cluster::storage, "Its own network, if any.")
          .optional("tier", &Cluster::tier, "Of service.", yaml::one_of({"gold", "silver"}))
          .check("nics", [](const Cluster& c) -> std::string {
            return c.nics.size() > 2 ? "a node has at most 2 kinds of nics" : "";
          });
  return table;
}

/// What is said of a cluster written as `text`.
inline std::string fault(const std::string& text) {
  const auto cluster = yaml::Loader().read_text<Cluster>(text, "c.yaml");
  return message_of(cluster);
}

}  // namespace foreshard::example
