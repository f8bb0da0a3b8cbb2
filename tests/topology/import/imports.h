/// \file
/// What tests of importers share: import a text, write it, read it back, build it.
#pragma once

#include "base/yaml/describe.h"
#include "tests/test.h"

#include "topology/import/import.h"

namespace foreshard {

inline yaml::Loader catalogue() {
  return yaml::Loader(shipped_options());
}

inline std::string data(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(FORESHARD_SOURCE_DIR "/tests/topology/import/data/" + name).rdbuf();
  return text.str();
}

inline Result<Imported> import_text(const std::string& text, const std::string& device = "") {
  auto loader = catalogue();
  return import_topology({.text = text, .name = "in.txt", .device = device}, loader);
}

inline std::string import_fault(const std::string& text, const std::string& device = "") {
  return message_of(import_text(text, device));
}

/// The text with its first `from` replaced.
inline std::string changed(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// "a>b" -> GB/s of the payload, both directions.
inline std::map<std::string, double> rates(const ClusterView& cluster) {
  std::map<std::string, double> result;
  for (const auto& link : cluster.links())
    result[cluster.vertices()[link.from.index()].name + ">" +
           cluster.vertices()[link.to.index()].name] += link.bandwidth / 1_GB_s;
  return result;
}

template <class T>
T read_back(const Imported& imported) {
  auto loader = catalogue();
  return value_of(loader.read_text<T>(to_yaml(imported), "out.yaml"), to_yaml(imported));
}

/// The node as its file says it, alone; the file must say what was imported.
inline ClusterView build_node_alone(const Imported& imported) {
  const auto node = read_back<NodeConfig>(imported);
  EXPECT_EQ(yaml::echo(node), yaml::echo(std::get<NodeConfig>(imported.what)));
  ClusterConfig config;
  config.node = yaml::Ref<NodeConfig>{node, ""};
  return value_of(build_cluster(config));
}

}  // namespace foreshard
