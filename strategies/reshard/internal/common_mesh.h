/// \file
/// A common mesh for two layouts of the same ranks: tp8 and tp4 x pp2 can both be written on the
/// mesh 4 x 2. Axes are also cut where the node changes, so that a collective can stay within nodes
/// (R1.5).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "strategies/graph/layout.h"

namespace foreshard::reshard::internal {

struct CommonMesh {
  ProcessMesh mesh{};
  /// axis of the source (target) mesh -> the common axes that it consists of, the fastest first,
  /// without axes of size 1.
  std::vector<std::vector<Axis>> from{};
  std::vector<std::vector<Axis>> to{};
};

/// The coarsest mesh, in the order of `from`'s ranks, such that every axis of `from` and of `to` is
/// a run of its axes. Empty if there is none (different ranks, an order of `to` that no axes
/// describe, or sizes like 2 x 3 against 3 x 2).
/// \param run  an extra cut of the axes: the number of consecutive positions that share a node; 1:
///     no extra cut.
std::optional<CommonMesh> common_mesh(const ProcessMesh& from, const ProcessMesh& to,
                                      std::int64_t run = 1);

/// Number of consecutive ranks of `mesh` that share a node, if it is the same everywhere and there
/// is more than one node; else 1.
std::int64_t ranks_per_node(const ProcessMesh& mesh, const std::vector<std::int32_t>& node_of_rank);

/// `attribute` with every axis replaced by the common axes that it consists of.
Attribute told_on(const std::vector<std::vector<Axis>>& axes, const Attribute& attribute);

}  // namespace foreshard::reshard::internal
