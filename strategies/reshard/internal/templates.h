/// \file
/// Compositions that are always tried: all-gather and slice, gather to a root and broadcast, one
/// transfer of intersections (requirements R0.2 to R0.4, README.md), and others with a transfer,
/// which the search along axes (paths.h) does not find.
#pragma once

#include <optional>
#include <vector>

#include "strategies/reshard/internal/paths.h"

namespace foreshard::reshard::internal {

class Templates {
 public:
  /// Holds references.
  Templates(Meshes& meshes, Pricer& pricer, std::vector<Failure>& failures)
      : meshes_(meshes), pricer_(pricer), failures_(failures) {}

  /// All-gather + slice; point to point, from the given slices and from replicas that are cut
  /// first; slice + permute + all-gather (the normal form of Rink et al.); gather to a root +
  /// broadcast.
  /// \pre from.mesh == to.mesh
  std::vector<Draft> on_one_mesh(const Place& from, const Place& to) const;

  /// Collectives on the source, a transfer, collectives on the target. Partial sums are resolved
  /// first. Replicas share the sending by cutting their slices. Replicas at the target receive
  /// parts and gather them, or one receives and broadcasts, axis by axis. Also gather to a root +
  /// broadcast.
  std::vector<Draft> between(const Place& from, const Place& to) const;

 private:
  // A beginning: `draft` leads to `place`, which has no partial sums and is transferred. Or an
  // ending: the transfer leads to `place`, and `draft` follows.
  struct End {
    Draft draft{};
    Place place{};
  };
  enum class Effort : std::uint8_t { kFew, kAll };

  Grid grid_at(MeshId mesh) const { return {pricer_.tensor().shape, meshes_.at(mesh).axes}; }
  Place canonical_at(const Place& place) const;
  std::vector<Axis> replicated_axes(const Place& place, const Attribute& wanted) const;

  std::vector<End> beginnings(const Place& from) const;
  std::vector<End> endings(const Place& to, Effort effort) const;
  std::optional<End> ending(const Place& padless, const Place& to, const std::vector<Axis>& gather,
                            const std::vector<Axis>& broadcast) const;
  Place part_of(const Place& place, const std::vector<Axis>& without) const;

  std::optional<Draft> gather_and_slice(const Place& from, const Place& to) const;
  std::optional<Draft> permuted(const Place& from, const Place& to) const;
  std::optional<Draft> by_root(const End& begin, const Place& to) const;
  std::optional<Draft> joined(const End& begin, const End& end) const;
  // Appends nothing, a local slice or a transfer, whichever is needed.
  void append_transfer(Draft& draft, const Place& from, const Place& to) const;
  void append_pad(Draft& draft, const Place& at, const Place& to) const;

  Meshes& meshes_;
  Pricer& pricer_;
  std::vector<Failure>& failures_;
};

}  // namespace foreshard::reshard::internal
