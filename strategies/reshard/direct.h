/// \file
/// The direct way from one even attribute to another on the same mesh: each axis that differs is
/// converted by the one primitive that R2.4 derives from its pair of states. It uses no prices and
/// builds no layouts, so that the search can call it millions of times; the cheapest composition is
/// `candidates` (plan.h), whose table has the primitives' bytes.
///
/// | axis, from -> to        | primitive      |
/// |-------------------------|----------------|
/// | partial -> replicated   | all_reduce     |
/// | partial -> split        | reduce_scatter |
/// | split -> replicated     | all_gather     |
/// | split(i) -> split(j)    | all_to_all     |
/// | replicated -> split     | slice          |
/// | -> partial              | pad            |
#pragma once

#include <vector>

#include "strategies/reshard/plan.h"

namespace foreshard::reshard {

/// One primitive on one axis. Its volume is that of one group.
struct AxisStep {
  Primitive primitive = Primitive::kSlice;
  Axis axis = 0;
  Volume volume{};
};

/// The steps from `from` to `to`, one axis each: first those that shrink what a rank holds
/// (slices, reduce-scatters, all-to-alls), then those that keep or grow it, so that every step
/// moves as little as it can; within either, axes ascend. Which of two axes of a dimension is the
/// major one is not regarded. Not modelled: local copies that pack the pieces.
/// \pre both attributes fit `shape` and `mesh` and are even.
std::vector<AxisStep> direct_steps(const Shape& shape, Bytes element, const Attribute& from,
                                   const Attribute& to, const std::vector<MeshAxis>& mesh);

}  // namespace foreshard::reshard
