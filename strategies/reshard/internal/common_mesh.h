/// \file
/// One mesh on which two layouts of the same ranks can be told: tp8 and tp4 x pp2 are both the mesh
/// 4 x 2. Axes are also cut where the node changes, so that a collective may stay within nodes
/// (R1.5).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "strategies/graph/layout.h"

namespace foreshard::reshard::internal {

struct CommonMesh {
  ProcessMesh mesh{};
  /// Per axis of the two meshes: the common axes it consists of, the fastest first; none of size 1.
  std::vector<std::vector<Axis>> from{};
  std::vector<std::vector<Axis>> to{};
};

/// The coarsest mesh, in the order of `from`'s ranks, of which every axis of `from` and of `to` is
/// a run of axes; nothing if there is none (other ranks, an order of `to` that no axes describe, or
/// sizes like 2 x 3 against 3 x 2).
/// \param run  Where an axis is cut besides: positions that share a node, in a row; 1 for no cut.
std::optional<CommonMesh> common_mesh(const ProcessMesh& from, const ProcessMesh& to,
                                      std::int64_t run = 1);

/// Ranks of `mesh` in a row that share a node, if it is the same number everywhere and there is
/// more than one node; else 1.
std::int64_t ranks_per_node(const ProcessMesh& mesh, const std::vector<std::int32_t>& node_of_rank);

/// `attribute` with every axis replaced by the axes it consists of.
Attribute told_on(const std::vector<std::vector<Axis>>& axes, const Attribute& attribute);

}  // namespace foreshard::reshard::internal
