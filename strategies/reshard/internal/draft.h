/// \file
/// Plans in a compact form for comparison: attributes on a few shared meshes instead of whole
/// layouts, and the price of each distinct step.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "strategies/graph/layout.h"
#include "strategies/reshard/plan.h"

namespace foreshard::reshard::internal {

/// The tensor's shape and the mesh axes to which all attributes here refer. Holds references only.
/// Only the minor end of a dimension may change, so that every slice stays one box.
struct Grid {
  const Shape& shape;
  const std::vector<MeshAxis>& axes;

  std::int64_t size(Axis axis) const { return axes[static_cast<std::size_t>(axis)].size; }
};

/// The attribute in its canonical form, for comparison: without axes of size 1, and without sizes
/// where the dimension is cut evenly.
Attribute canonical(Attribute attribute, const Grid& grid);

/// Extents of the slices of `dim`.
std::vector<std::int64_t> sizes_of(const Attribute& attribute, const Grid& grid, std::size_t dim);

/// The largest extent of the slices of each dimension.
std::vector<std::int64_t> extents_of(const Attribute& attribute, const Grid& grid);

/// Sums of every `run` neighbouring sizes: the sizes after removing minor axes with `run` parts
/// together.
std::vector<std::int64_t> merged(const std::vector<std::int64_t>& sizes, std::int64_t run);

/// Number of leading axes of `dim` in which `attribute` equals `guide`, with the same slices.
std::size_t settled(const Attribute& attribute, const Attribute& guide, const Grid& grid,
                    std::size_t dim);

/// The attribute without the last `count` axes of `dim`.
Attribute without_minor(const Attribute& attribute, const Grid& grid, std::size_t dim,
                        std::size_t count);

enum class Cut : std::uint8_t { kEven, kBalanced };
/// The attribute with `axis` as the new minor axis of `dim`. If the axes are then the first axes of
/// `guide`'s dimension, the cut is `guide`'s (empty if its slices do not fit into the present
/// ones). Else every slice is cut evenly (empty if that is impossible), or with Cut::kBalanced as
/// evenly as possible.
std::optional<Attribute> with_minor(const Attribute& attribute, const Grid& grid, std::size_t dim,
                                    Axis axis, const Attribute& guide, Cut cut);

/// The attribute with `axis`, which `guide` does not split, as minor axis of some dimension. Among
/// the dimensions that it cuts evenly: the first that does not wait for an axis of `guide`, else
/// the first. If it cuts none evenly: the longest, balanced. Empty only for a tensor without
/// dimensions.
std::optional<Attribute> parked(const Attribute& attribute, const Grid& grid, Axis axis,
                                const Attribute& guide);

/// The attribute with all of `axes` appended where `guide` has them; empty unless all fit there
/// now.
std::optional<Attribute> placed(const Attribute& attribute, const Grid& grid,
                                const std::vector<Axis>& axes, const Attribute& guide);

bool contains(const std::vector<Axis>& axes, Axis axis);

/// The dimension that `axis` splits, or -1.
std::int32_t dim_of(const Attribute& attribute, Axis axis);

/// The attribute without partial sums.
Attribute without_partial(Attribute attribute);

/// Index of a mesh in Meshes.
using MeshId = int;

/// The meshes of one call of `candidates`, each once.
class Meshes {
 public:
  MeshId add(ProcessMesh mesh);
  const ProcessMesh& at(MeshId id) const { return meshes_[static_cast<std::size_t>(id)]; }

 private:
  std::vector<ProcessMesh> meshes_{};
};

struct MeshAttribute {
  MeshId mesh = 0;
  Attribute attribute{};
  auto operator<=>(const MeshAttribute&) const = default;
};

struct DraftStep {
  Primitive primitive = Primitive::kSlice;
  MeshAttribute from{};
  MeshAttribute to{};
  std::vector<Axis> axes{};
  bool rename = false;  ///< The same slices written on another mesh: costs nothing.
};

struct Draft {
  std::vector<DraftStep> steps{};
  Seconds estimate{};
};

/// Appends `step`; a slice after a slice on the same mesh is joined with it.
void append(Draft& draft, DraftStep step);

class Pricer {
 public:
  Pricer(const TensorSpec& tensor, const Meshes& meshes, const StepPrice& price)
      : tensor_(tensor), meshes_(meshes), price_(price) {}

  /// The step's price, asked for once per primitive, axes, bytes and extents of the slices (for
  /// steps without axes and broadcasts: once per pair of places). A rename is free.
  const Result<Seconds>& price(const DraftStep& step);
  /// The sum of the steps' prices.
  Result<Seconds> price(const Draft& draft);

  /// Prices a gather over each single axis of the mesh, so that `bound` knows the fastest rate.
  void calibrate(MeshId mesh);
  /// An approximate lower bound of `price`: the bytes that a rank sends or receives on average, at
  /// twice the fastest rate seen so far.
  Seconds bound(const DraftStep& step) const;
  Seconds bound(const Draft& draft) const;

  Step step_of(const DraftStep& step) const;
  const TensorSpec& tensor() const { return tensor_; }
  const Meshes& meshes() const { return meshes_; }

 private:
  using Key = std::tuple<Primitive, MeshId, std::vector<Axis>, double, std::vector<std::int64_t>>;

  Grid grid_at(MeshId mesh) const { return {tensor_.shape, meshes_.at(mesh).axes}; }
  Bytes logical(const DraftStep& step) const;
  Bytes bytes_per_rank(const DraftStep& step) const;

  const TensorSpec& tensor_;
  const Meshes& meshes_;
  const StepPrice& price_;
  BytesPerSecond fastest_{};
  std::map<Key, Result<Seconds>> collectives_{};
  std::map<std::pair<MeshAttribute, MeshAttribute>, Result<Seconds>> others_{};
};

/// "all_gather(tp) + slice(dp)"; "nothing" if all steps are renames.
std::string name_of(const Draft& draft, const Meshes& meshes);

}  // namespace foreshard::reshard::internal
