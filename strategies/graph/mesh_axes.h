/// \file
/// What the axes of a strategy's mesh are for, by their names.
///
///     axis       its ranks                                              ZeRO cuts states over it
///     tensor     each hold a part of the matrices of a layer            no
///     context    hold copies of the parameters, see other tokens        yes
///     context_heads  likewise, and exchange tokens for heads            yes
///     data       hold copies of the parameters, see other samples       yes
///     expert     likewise, but each holds other routed experts          yes
///     replica    likewise; each group of "data" holds all shards        no
///     pipeline   hold other layers                                      no
///
/// "expert", "data" and "replica" together are data parallelism; "context" cuts the sequences of
/// their samples. Copies of a parameter that is
/// itself split over one of them (an expert's) lie along the others alone. Shards over "data" with
/// copies over "replica" are hybrid sharding (HSDP).
/// Source: Zhao et al., "PyTorch FSDP", VLDB 2023, section 3.2.2 (hybrid sharding); Liu et al.,
/// "MoE Parallel Folding", arXiv 2504.14960 (attention and experts with axes of their own).
#pragma once

#include <vector>

#include "strategies/graph/attribute.h"

namespace foreshard {

/// Axes over which the samples of a batch are split. Ascending.
std::vector<Axis> sample_axes(const std::vector<MeshAxis>& mesh);

/// Axes over which samples or their tokens are split: their ranks hold copies of the parameters,
/// and gradients are summands of each. Ascending.
std::vector<Axis> copy_axes(const std::vector<MeshAxis>& mesh);

/// Axes over which sequences are cut, the major one first: "context" and "context_heads".
std::vector<Axis> context_axes(const std::vector<MeshAxis>& mesh);

/// Those of copy_axes() over which ZeRO cuts parameters, gradients and the optimizer's states.
std::vector<Axis> shard_axes(const std::vector<MeshAxis>& mesh);

/// Axes over which parameters can be split: "tensor", "expert" and "pipeline".
std::vector<Axis> split_axes(const std::vector<MeshAxis>& mesh);

/// Those of `axes` that split no dimension of a tensor which lies as `dims` says.
std::vector<Axis> without(std::vector<Axis> axes, const std::vector<std::vector<Axis>>& dims);

}  // namespace foreshard
