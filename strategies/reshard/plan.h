/// \file
/// Plans that turn a tensor's slices under one layout into its slices under another (R0, R2.6;
/// R numbers are the requirements listed in README.md): a series of steps, each by one primitive
/// from a layout to a layout. Candidates are ranked by the sum of their steps' closed-form times;
/// the best are simulated (choose.h). Lowering to a Program: program.h.
///
/// | primitive      | from -> to, on the axes of the step   | patent total    | exact total       |
/// |----------------|---------------------------------------|-----------------|-------------------|
/// | all_reduce     | partial -> replicated                 | 2 p T           | 2 (p-1) T         |
/// | reduce_scatter | partial -> split                      | p T             | (p-1) T           |
/// | all_gather     | split -> replicated                   | p T             | (p-1) T           |
/// | all_to_all     | split(i) -> split(j)                  | T               | (p-1)/p T         |
/// | broadcast      | one rank -> replicated on a mesh that | p T             | (p-1) T           |
/// |                | contains that rank                    |                 |                   |
/// | transfer       | any -> any, neither partial; sends    | all moves, also | moves between two |
/// |                | each intersection of two slices       | within a rank   | different ranks   |
/// | slice          | every rank has its target already     | 0 (local)       | 0                 |
/// | pad            | replicated or split -> partial        | 0 (local)       | 0                 |
///
/// p = ranks of one group; T = bytes of the logical tensor that *one group* holds together. Both
/// totals are bytes over all groups: the patent total (the routing model of requirement R2.5, the
/// volume of each primitive) counts each rank's own part too, the exact total only what crosses
/// links.
/// A collective sends pieces of one size. Where slices are uneven, the slices of all groups are
/// padded to the largest one, and T is p times that; for an all-to-all, T is p^2 times the largest
/// piece that one rank sends to another.
/// Pad from replicated: rank 0 along the axes keeps its values. Pad from split: every rank keeps
/// its slice. All other elements become the identity of the reduction (0 for a sum).
///
/// Source: the forms of R2.4 and R2.5; series of collectives as Rink, Paszke, Vytiniotis and
/// Schmid, "Memory-efficient array redistribution through portable collective communication",
/// arXiv:2112.01075 (2021): slices first, gathers last, and a permutation for the rest in between.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/graph/layout.h"
#include "strategies/program/ir/kernel.h"
#include "strategies/program/ir/program.h"
#include "topology/cluster_view.h"

namespace foreshard::reshard {

/// The placement of ranks: the cluster, and the device of each rank.
struct Placement {
  const ClusterView* cluster = nullptr;
  std::vector<std::int32_t> device_of_rank{};  ///< Empty: rank r is on device r. Distinct.

  /// \pre `rank` has a device (`fault_in`)
  DeviceId device(std::int32_t rank) const {
    return DeviceId{device_of_rank.empty() ? rank : device_of_rank[static_cast<std::size_t>(rank)]};
  }
};

/// A message about the first rank of `mesh` without a device, which says what ranks there are;
/// empty if all ranks have one.
std::optional<std::string> fault_in(const Placement& placement, const ProcessMesh& mesh);

/// rank -> node, for every rank that has a device.
std::vector<std::int32_t> nodes_of_ranks(const Placement& placement);

/// The whole (logical) tensor.
struct TensorSpec {
  DType dtype = DType::kBf16;
  Shape shape{};
  bool operator==(const TensorSpec&) const = default;
};
Bytes bytes_of(const TensorSpec& tensor);

enum class Primitive : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kBroadcast,
  kTransfer,
  kSlice,
  kPad,
};
std::string_view name_of(Primitive primitive);

/// One primitive, applied to the whole tensor. For a collective, `from` and `to` have the same
/// mesh, and every group consists of the ranks that agree on all axes not in `axes`. For
/// kBroadcast, `from` is on a part of `to`'s mesh: one rank of each group, the root, which holds
/// the slice of its whole group.
struct Step {
  Primitive primitive = Primitive::kSlice;
  Layout from{};
  Layout to{};
  /// Axes of `to`'s mesh, ascending. Empty for kTransfer, and for a kSlice that changes the mesh
  /// (such as one that only renames the same slices on another mesh).
  std::vector<Axis> axes{};
  bool operator==(const Step&) const = default;
};
/// Whether the primitive works within each rank, without communication.
bool is_local(Primitive primitive);
/// The collective that executes the primitive; empty for kTransfer and local primitives.
std::optional<program::CollectiveKind> collective_of(Primitive primitive);

/// A box of the tensor that rank `from` sends to rank `to` (rank numbers as in
/// ProcessMesh::ranks). Moves within a rank are listed as well (from == to); they use no link.
struct Move {
  std::int32_t from = 0;
  std::int32_t to = 0;
  Box box{};
  auto operator<=>(const Move&) const = default;
};

/// The moves of a kTransfer step (R0.4). Every target rank receives the pieces of source slices
/// that cover its slice. The sender of a piece is the target itself if it holds the piece, else a
/// replica on the same node (`node_of_rank`: rank -> node; empty: all ranks on one node), else any
/// replica; among equals the one that has sent least so far, so that replicas share the sending.
/// Cost: O(moves).
/// \pre step.primitive is kTransfer
std::vector<Move> moves_of(const Step& step, const TensorSpec& tensor,
                           const std::vector<std::int32_t>& node_of_rank = {});
/// The number of moves, without listing them: a double, as it can be the product of two mesh sizes.
double count_moves(const Step& step, const TensorSpec& tensor);

/// The groups of a collective step, each in the order of its axes' coordinates (first fastest); for
/// kBroadcast the root comes first.
std::vector<std::vector<std::int32_t>> groups_of(const Step& step);

/// Bytes of the step.
struct Volume {
  Bytes logical{};       ///< T above: one group's bytes; for kTransfer, the whole tensor.
  Bytes patent_total{};  ///< Bytes over all groups, including each rank's own part.
  Bytes exact_total{};   ///< Bytes over all groups that cross links.
};
Volume volume_of(const Step& step, const TensorSpec& tensor);
/// The value of `program::Communication::bytes` for a collective among `ranks` ranks with T =
/// `logical`: T, but for an all-to-all one rank's send buffer, T / p.
Bytes communication_bytes(Primitive primitive, Bytes logical, double ranks);
/// Volume::logical alone, for a step that is not a transfer. It needs the meshes' axes but not
/// their ranks.
Bytes logical_bytes(const Step& step, const TensorSpec& tensor);
/// The volume of one group of a collective or local primitive: the table's row with T = `held`, p =
/// `ranks`.
Volume volume_of_group(Primitive primitive, Bytes held, double ranks);

/// A chain of steps: the first begins at the source layout, each further one at the end of the
/// previous one.
struct Plan {
  std::string name{};  ///< "all_gather(tp) + slice(dp)": its steps in order; "nothing": no steps.
  std::vector<Step> steps{};
  Seconds estimate{};  ///< Sum of the prices of its steps.
};
/// The sum over the plan's steps; `logical` is the largest of any step.
Volume volume_of(const Plan& plan, const TensorSpec& tensor);

/// Closed-form time of one step, including the copies of a local step. It must depend only on the
/// primitive, the groups, the bytes and the extents of the slices: it is called once for all steps
/// that share them.
/// \return kInfeasible where ranks have no route.
using StepPrice = std::function<Result<Seconds>(const Step&)>;

struct CandidateOptions {
  std::int32_t keep = 12;  ///< Largest number of plans returned.
  /// Plans slower than this factor times the cheapest are left out. Most of them are recognised
  /// without a price, by a lower bound: their bytes at twice the fastest rate of any axis.
  double slowest_ratio = 3;
  /// rank -> node; empty: all ranks on one node. Replicas that share sending, and regroupings, stay
  /// within nodes where possible.
  std::vector<std::int32_t> node_of_rank{};
};

/// Plans from one layout to another, cheapest first (ties: fewer steps, then by name).
/// On one mesh they are the cheapest paths in a graph whose nodes are attributes (what each axis
/// does: split, replicated, partial) and whose edges are primitives (series and alternatives,
/// R2.6). Three fixed plans are always considered: all-gather + slice; one transfer of the slices'
/// intersections (R0.4); gather to one root + broadcast (R0.3).
/// Between two meshes: collectives on the source, a transfer, collectives on the target.
/// Every considered plan that is not in `plans` is named in `rejected`, up to 40.
struct Candidates {
  std::vector<Plan> plans;  ///< Not empty; for equal layouts one plan without steps.
  struct Rejected {
    std::string name;
    std::string reason;
  };
  /// Plans that were considered and left out, with the reason: slower, or impossible.
  std::vector<Rejected> rejected;
};
/// \return kInvalidInput if a layout breaks a constraint (fault_in) or has a rank that
///     `node_of_rank` lacks; kInfeasible if no plan has a route.
Result<Candidates> candidates(const TensorSpec& tensor, const Layout& from, const Layout& to,
                              const StepPrice& price, const CandidateOptions& options = {});

/// Reads a tensor as text on the command line: "bf16[8192, 53248]", "fp32[]".
/// \return kInvalidInput, with a caret under the place, for an unknown type, an extent that is not
///     a whole number, or more than 2^53 bytes in all (beyond which byte counts are not exact).
Result<TensorSpec> parse_tensor(std::string_view text);

/// Text that `parse_tensor` reads back.
std::string describe(const TensorSpec& tensor);

}  // namespace foreshard::reshard
