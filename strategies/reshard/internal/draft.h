/// \file
/// Plans in a compact form for comparison: attributes on a few shared meshes instead of whole
/// layouts, and the price of each distinct step.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "strategies/reshard/internal/attributes.h"
#include "strategies/reshard/plan.h"

namespace foreshard::reshard::internal {

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

struct Place {
  MeshId mesh = 0;
  Attribute attribute{};
  auto operator<=>(const Place&) const = default;
};

struct DraftStep {
  Primitive primitive = Primitive::kSlice;
  Place from{};
  Place to{};
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
  std::map<std::pair<Place, Place>, Result<Seconds>> others_{};
};

/// "all_gather(tp) + slice(dp)"; "nothing" if all steps are renames.
std::string name_of(const Draft& draft, const Meshes& meshes);

}  // namespace foreshard::reshard::internal
