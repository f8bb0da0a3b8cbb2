/// \file
/// A cluster in YAML, and how a ClusterView is built from it:
///
///     name: two-boxes
///     nodes: 2
///     node: dgx-a100-80gb              # configs/nodes/, or written out here (node_config.h)
///     fabric: {kind: single-switch}    # fabric_config.h
///
///     yaml::Loader loader({.catalogue = {"configs"}});
///     auto config = loader.read_file<ClusterConfig>("cluster.yaml");
///     auto cluster = build_cluster(*config, loader);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"

#include "topology/cluster_view.h"
#include "topology/fabric_config.h"
#include "topology/node_config.h"

namespace foreshard {

/// Some equal nodes of a cluster that has several kinds.
struct NodeGroup {
  std::int64_t nodes = 1;
  yaml::Ref<NodeConfig> node;
};

/// Links that reach only a part of their bandwidth, or devices that reach a part of their speed.
/// Exactly one of the two.
struct Degradation {
  std::string links{};  ///< A selector, as in ClusterConfig::down.
  std::optional<double> factor{};
  std::string devices{};  ///< A selector of devices alone: "node3/gpu5".
  std::optional<double> speed{};
};

struct ClusterConfig {
  std::string name = "cluster";
  std::int64_t nodes = 1;
  std::optional<yaml::Ref<NodeConfig>> node;
  std::vector<NodeGroup> groups;  ///< Instead of `nodes` and `node`.
  FabricConfig fabric;
  Routing routing = Routing::kSpread;
  std::int64_t seed = 0;
  bool sharp = false;  ///< The network's switches add up what passes (NVIDIA SHARP).
  /// Whether all messages reach NICs of other rails over NVLink, or none does (cluster_view.h).
  /// Default: all where rails meet nowhere else, else those between peers on NVIDIA's GPUs.
  std::optional<bool> pxn;
  /// Selectors: "node3/gpu5" is that device, NIC or switch with every link of it, "node3/nic0 -
  /// pod0/leaf0" the links between two; `*` stands for any text, `?` for any character.
  std::vector<std::string> down;
  std::vector<Degradation> degraded;
  /// Not in YAML: every cable is a link of its own also where equal ones could be one, so that each
  /// can be disturbed by name.
  bool single_cables = false;
  std::optional<HostConfig> host;                       ///< Instead of that of the nodes.
  std::optional<yaml::Sourced<DollarsPerSecond>> rent;  ///< Of one device, instead of its type's.
  /// Of one device that is owned, with its share of everything around it; written off evenly over
  /// `lifetime`. Instead of rent.
  std::optional<yaml::Sourced<Dollars>> price;
  std::optional<yaml::Sourced<Seconds>> lifetime;
  std::optional<yaml::Sourced<Watts>> switch_power;  ///< Of each switch of the fabric.
  std::optional<yaml::Sourced<Watts>> other_power;   ///< Storage, management: of all together.
  /// Power usage effectiveness: what the site draws over what its machines draw. 1: they alone.
  std::optional<yaml::Sourced<double>> pue;
  std::optional<yaml::Sourced<DollarsPerJoule>> electricity;  ///< On top of rent or price.
  std::optional<yaml::Sourced<KilogramsPerJoule>> carbon;     ///< CO2, of the electricity.

  /// `groups`, or the one that `nodes` and `node` make.
  std::vector<NodeGroup> node_groups() const;
  std::int64_t node_count() const;
  std::int64_t device_count() const;
};

const yaml::Names<Routing>& yaml_names(const Routing*);
const yaml::Table<NodeGroup>& yaml_table(const NodeGroup*);
const yaml::Table<Degradation>& yaml_table(const Degradation*);
const yaml::Table<ClusterConfig>& yaml_table(const ClusterConfig*);

/// \param loader  that read `config`: errors then show file, line and caret.
/// \param at      where `config` stands in what the loader read, for example "cluster".
/// \return kInvalidInput if the parts do not fit together (fabric and number of nodes, a selector
///     that matches nothing, several nodes without NICs, rails that never meet).
Result<ClusterView> build_cluster(const ClusterConfig& config, const yaml::Loader& loader,
                                  std::string_view at = {});
/// The same for a config that no loader read: errors name the key only.
Result<ClusterView> build_cluster(const ClusterConfig& config);

}  // namespace foreshard
