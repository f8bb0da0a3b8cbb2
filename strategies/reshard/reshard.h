/// \file
/// From one distributed attribute of a tensor to another on the same mesh: which communication
/// primitives, in which order, moving how many bytes (R2.4, R2.5).
///
/// | axis, from -> to        | primitive      | patent's total | crosses links in total |
/// |-------------------------|----------------|----------------|------------------------|
/// | partial -> replicated   | all-reduce     | 2 p T          | 2 (p-1) T              |
/// | partial -> split        | reduce-scatter | p T            | (p-1) T                |
/// | split -> replicated     | all-gather     | p T            | (p-1) T                |
/// | split(i) -> split(j)    | all-to-all     | T              | (p-1)/p T              |
/// | replicated -> split     | local slice    | 0              | 0                      |
/// | -> partial              | local pad      | 0              | 0                      |
///
/// p = ranks along the axis; T = bytes of what the p ranks of one group hold of the logical tensor
/// together (the whole tensor, if no other axis splits it).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "strategies/graph/attribute.h"

namespace foreshard::reshard {

enum class Primitive : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kSlice,
  kPad,
};
std::string_view name_of(Primitive primitive);

struct Step {
  Primitive primitive = Primitive::kSlice;
  Axis axis = 0;
  Bytes logical{};       ///< T above: what `program::Communication::bytes` counts.
  Bytes patent_total{};  ///< R2.5, over the group, a rank's own part counted.
  Bytes exact_total{};   ///< R2.5, over the group, what crosses links.
};

/// The collective that executes the step; nothing for local ones.
std::optional<program::CollectiveKind> collective_of(Primitive primitive);

/// The steps from `from` to `to`, one axis each: first those that shrink what a rank holds
/// (slices, reduce-scatters, all-to-alls), then those that keep or grow it, so that every step
/// moves as little as it can; within either, axes ascend. Not modelled: local copies that pack the
/// pieces. \pre both attributes fit `shape` and `mesh`.
std::vector<Step> plan(const std::vector<std::int64_t>& shape, Bytes element, const Attribute& from,
                       const Attribute& to, const std::vector<MeshAxis>& mesh);

}  // namespace foreshard::reshard
