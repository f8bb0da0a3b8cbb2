/// \file
/// The direct conversion from one even attribute to another on the same mesh: each axis that
/// differs is converted by the one primitive that its pair of states (split, partial, replicated)
/// determines (requirement R2.4, README.md). Axes with the same primitive form one group: one
/// collective among all ranks that differ only in these axes. It uses no prices and builds no
/// layouts, so that the search can call it millions of times. `candidates` finds the cheapest
/// composition (plan.h, whose table has the primitives' bytes).
///
/// Source: frameworks reduce over such joint groups: NVIDIA/Megatron-LM,
/// megatron/core/parallel_state.py (RankGenerator.get_ranks("dp-cp"), the expert groups);
/// pytorch/pytorch, torch/distributed/device_mesh.py (DeviceMesh._flatten).
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

/// One primitive on a group of axes. `volume` is one group's.
struct AxesStep {
  Primitive primitive = Primitive::kSlice;
  std::vector<Axis> axes{};  ///< Ascending, without axes of one rank.
  Volume volume{};
};

/// The steps from `from` to `to`. Steps that shrink a rank's slice come first (slices, then
/// reduce-scatters), then all-to-alls, then steps that keep or grow it (all-reduces, all-gathers,
/// pads), so that every step moves as few bytes as possible. Summands with different reductions are
/// reduced separately. All-to-alls are joined if their axes all leave one dimension, or all enter
/// one: only then does each rank send equally much to every other rank. The order of two axes
/// within a dimension is ignored. Not modelled: local copies that pack the pieces.
/// \pre both attributes fit `shape` and `mesh` and are even
std::vector<AxesStep> direct_steps(const Shape& shape, Bytes element, const Attribute& from,
                                   const Attribute& to, const std::vector<MeshAxis>& mesh);

}  // namespace foreshard::reshard
