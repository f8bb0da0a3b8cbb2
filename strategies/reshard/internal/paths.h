/// \file
/// The cheapest paths through the attributes of one mesh (R2.6). Attributes are the states of a
/// graph; its edges are primitives on one axis, or on several axes as one collective over the
/// joined group.
///
/// Not tried, since it cannot help or helps too rarely: moving an axis that is already where the
/// target has it; gathering an axis to cut it where the target does not want it. Replicated axes
/// that the target does not split may be *parked* on some dimension meanwhile: the following steps
/// then move fewer bytes, and an all-gather at the end restores them (an all-reduce becomes
/// reduce-scatter, a step on fewer bytes, all-gather).
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "strategies/reshard/internal/draft.h"

namespace foreshard::reshard::internal {

struct Route {
  Primitive primitive = Primitive::kSlice;
  std::vector<Axis> axes{};
  Attribute to{};
};

/// The edges that leave `at` on the way from `from` to `to`. All three are canonical.
std::vector<Route> routes_from(const Attribute& at, const Attribute& from, const Attribute& to,
                               const Grid& grid);

/// The axes that a local pad must still make partial to get from `at` to `to`, if nothing else is
/// missing.
/// \return no value if more is missing; an empty list at `to` itself
std::optional<std::vector<Axis>> pad_to(const Attribute& at, const Attribute& to, const Grid& grid);

/// A step without a price, and the reason.
struct Failure {
  DraftStep step{};
  std::string reason{};
};
inline constexpr Seconds kNoLimit = Seconds::from_base(std::numeric_limits<double>::infinity());
/// Up to `most` paths that take at most `limit`, cheapest first, none through a state twice.
/// Considers up to 1,500 states, nearest first; where a tensor has more (beyond about four axes) a
/// path may be missed. A step is priced only if a path with it may be among the results. `failures`
/// receives the steps without a price, each with the reason.
std::vector<Draft> cheapest_paths(const MeshAttribute& from, const MeshAttribute& to,
                                  std::size_t most, Seconds limit, Pricer& pricer,
                                  std::vector<Failure>& failures);

class Templates {
 public:
  /// Holds references.
  Templates(Meshes& meshes, Pricer& pricer, std::vector<Failure>& failures)
      : meshes_(meshes), pricer_(pricer), failures_(failures) {}

  /// All-gather + slice; point to point, from the given slices and from replicas that are cut
  /// first; slice + permute + all-gather (the normal form of Rink et al.); gather to a root +
  /// broadcast.
  /// \pre from.mesh == to.mesh
  std::vector<Draft> on_one_mesh(const MeshAttribute& from, const MeshAttribute& to) const;

  /// Collectives on the source, a transfer, collectives on the target. Partial sums are resolved
  /// first. Replicas share the sending by cutting their slices. Replicas at the target receive
  /// parts and gather them, or one receives and broadcasts, axis by axis. Also gather to a root +
  /// broadcast.
  std::vector<Draft> between(const MeshAttribute& from, const MeshAttribute& to) const;

 private:
  // A beginning: `draft` leads to `place`, which has no partial sums and is transferred. Or an
  // ending: the transfer leads to `place`, and `draft` follows.
  struct DraftEnd {
    Draft draft{};
    MeshAttribute place{};
  };
  enum class Effort : std::uint8_t { kFew, kAll };

  Grid grid_at(MeshId mesh) const { return {pricer_.tensor().shape, meshes_.at(mesh).axes}; }
  MeshAttribute canonical_at(const MeshAttribute& place) const;
  std::vector<Axis> replicated_axes(const MeshAttribute& place, const Attribute& wanted) const;

  std::vector<DraftEnd> beginnings(const MeshAttribute& from) const;
  std::vector<DraftEnd> endings(const MeshAttribute& to, Effort effort) const;
  std::optional<DraftEnd> ending(const MeshAttribute& padless, const MeshAttribute& to,
                                 const std::vector<Axis>& gather,
                                 const std::vector<Axis>& broadcast) const;
  MeshAttribute part_of(const MeshAttribute& place, const std::vector<Axis>& without) const;

  std::optional<Draft> gather_and_slice(const MeshAttribute& from, const MeshAttribute& to) const;
  std::optional<Draft> permuted(const MeshAttribute& from, const MeshAttribute& to) const;
  std::optional<Draft> by_root(const DraftEnd& begin, const MeshAttribute& to) const;
  std::optional<Draft> joined(const DraftEnd& begin, const DraftEnd& end) const;
  // Appends nothing, a local slice or a transfer, whichever is needed.
  void append_transfer(Draft& draft, const MeshAttribute& from, const MeshAttribute& to) const;
  void append_pad(Draft& draft, const MeshAttribute& at, const MeshAttribute& to) const;

  Meshes& meshes_;
  Pricer& pricer_;
  std::vector<Failure>& failures_;
};

}  // namespace foreshard::reshard::internal
