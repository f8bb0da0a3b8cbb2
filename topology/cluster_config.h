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

/// A group of identical nodes, in a cluster that has several kinds of nodes.
struct NodeGroup {
  std::int64_t nodes = 1;
  yaml::Ref<NodeConfig> node;
};

/// Links that reach only a part of their bandwidth, or devices that reach only a part of their
/// speed: exactly one of the two.
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
  std::vector<NodeGroup> groups;  ///< Replaces `nodes` and `node`.
  FabricConfig fabric;
  Routing routing = Routing::kSpread;
  std::int64_t seed = 0;
  bool sharp = false;  ///< The network's switches reduce data in flight (NVIDIA SHARP).
  /// true: all messages reach NICs of other rails over NVLink; false: none do (`Pxn` in
  /// cluster_view.h). Default: all messages where the network does not join rails; else sends and
  /// receives on NVIDIA GPUs, and none on other GPUs.
  std::optional<bool> pxn;
  /// Selectors of what does not work. "node3/gpu5": that device, NIC or switch with all its links;
  /// "node3": everything in that node; "node3/nic0 - pod0/leaf0": the links between the two. `*`
  /// stands for any text, `?` for any character.
  std::vector<std::string> down;
  std::vector<Degradation> degraded;
  /// Not in YAML: every cable stays a link of its own, even where equal cables could be merged into
  /// one link, so that each can be disturbed by name.
  bool single_cables = false;
  std::optional<HostConfig> host;  ///< Replaces the nodes' own `host`.
  /// Rent of one device; replaces its type's.
  std::optional<yaml::Sourced<DollarsPerSecond>> rent;
  /// Purchase price of one device with its share of everything around it, written off evenly over
  /// `lifetime`. Replaces rent.
  std::optional<yaml::Sourced<Dollars>> price;
  std::optional<yaml::Sourced<Seconds>> lifetime;
  std::optional<yaml::Sourced<Watts>> switch_power;  ///< Power of each switch of the fabric.
  std::optional<yaml::Sourced<Watts>> other_power;   ///< Total power of storage, management, ...
  /// Power usage effectiveness: power of the site / power of its machines. 1: the machines alone.
  std::optional<yaml::Sourced<double>> pue;
  /// Energy price, on top of rent or price.
  std::optional<yaml::Sourced<DollarsPerJoule>> electricity;
  std::optional<yaml::Sourced<KilogramsPerJoule>> carbon;  ///< CO2 per unit of electricity.

  /// `groups`, or the single group that `nodes` and `node` describe.
  std::vector<NodeGroup> node_groups() const;
  std::int64_t node_count() const;
  std::int64_t device_count() const;
};

const yaml::Names<Routing>& yaml_names(const Routing*);
const yaml::Table<NodeGroup>& yaml_table(const NodeGroup*);
const yaml::Table<Degradation>& yaml_table(const Degradation*);
const yaml::Table<ClusterConfig>& yaml_table(const ClusterConfig*);

/// \param loader  the loader that read `config`, so that errors show file, line and caret.
/// \param at      path of `config` in what the loader read, for example "cluster".
/// \return kInvalidInput if the parts do not fit together (fabric and number of nodes, a selector
///     that matches nothing, several nodes without NICs, rails that never meet).
Result<ClusterView> build_cluster(const ClusterConfig& config, const yaml::Loader& loader,
                                  std::string_view at = {});
/// The same for a config that no loader read: errors name the key only.
Result<ClusterView> build_cluster(const ClusterConfig& config);

}  // namespace foreshard
