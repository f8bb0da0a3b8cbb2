/// \file
/// The direct way from one even attribute to another on the same mesh: each axis that differs is
/// converted by the one primitive that R2.4 derives from its pair of states, and axes that take the
/// same primitive are one group: one collective among all ranks that differ in them alone. It uses
/// no prices and builds no layouts, so that the search can call it millions of times; the cheapest
/// composition is `candidates` (plan.h), whose table has the primitives' bytes.
///
/// Source: joint groups are what frameworks reduce over: NVIDIA/Megatron-LM,
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

/// One primitive on the axes that take it. Its volume is that of one group.
struct AxesStep {
  Primitive primitive = Primitive::kSlice;
  std::vector<Axis> axes{};  ///< Ascending, those of one rank left out.
  Volume volume{};
};

/// The steps from `from` to `to`: first those that shrink what a rank holds (slices, then
/// reduce-scatters), then all-to-alls, then those that keep or grow it (all-reduces, all-gathers,
/// pads), so that every step moves as little as it can. Summands that combine in different ways
/// are reduced apart. All-to-alls are one where their axes leave one dimension, or reach one: only
/// then does each rank send as much to every other one. Which of two axes of a dimension is the
/// major one is not regarded. Not modelled: local copies that pack the pieces.
/// \pre both attributes fit `shape` and `mesh` and are even.
std::vector<AxesStep> direct_steps(const Shape& shape, Bytes element, const Attribute& from,
                                   const Attribute& to, const std::vector<MeshAxis>& mesh);

}  // namespace foreshard::reshard
