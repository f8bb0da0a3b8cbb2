/// \file
/// What the axes of a strategy's mesh are for, by their names.
///
///     axis           its ranks                                          ZeRO cuts states over it
///     tensor         each hold a part of the matrices of a layer        no
///     context        hold copies of the parameters, see other tokens    yes
///     context_heads  likewise, and exchange tokens for heads            yes
///     data           hold copies of the parameters, see other samples   yes
///     replica        likewise; each group of "data" holds all shards    no
///     pipeline       hold other layers                                  no
///     whole_experts  of one rank: a mark that ZeRO leaves experts whole no
///
/// "data" and "replica" together are data parallelism; "context" cuts the sequences of their
/// samples. Shards over "data" with copies over "replica" are hybrid sharding (HSDP).
///
/// Routed experts have groups of their own among the same ranks. The tensor-, context- and
/// data-parallel ranks of one set of shards, flattened in this order with tensor the fastest, are
/// numbered on: the first `expert_tensor_parallel` neighbours hold parts of one expert,
/// `expert_parallel` such groups hold all experts once, and the groups behind hold copies. Where a
/// border of these falls within an axis, the axis is cut in two there. By what their ranks hold of
/// the experts, the pieces are
///
///     of axis         parts of one           others                  copies
///     tensor          tensor                 tensor_experts          tensor_copies
///     context_heads   context_heads_parts    context_heads_experts   context_heads
///     context         context_parts          context_experts         context
///     data            expert_parts           expert                  data
///
/// and to all other parameters each is what the axis is. Copies of a parameter that is itself split
/// over an axis lie along the others alone. Only copies of experts lie along "whole_experts",
/// so that a list of axes tells whether it is of experts that stay whole.
/// Source: Zhao et al., "PyTorch FSDP", VLDB 2023, section 3.2.2 (hybrid sharding); Liu et al.,
/// "MoE Parallel Folding", arXiv 2504.14960; NVIDIA/Megatron-LM, megatron/core/parallel_state.py
/// (RankGenerator, of which one is made for all else and one with expert_tensor_parallel_size and
/// expert_model_parallel_size for experts, both in the order tp-cp-ep-dp-pp).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "strategies/graph/attribute.h"
#include "strategies/graph/graph.h"

namespace foreshard {

inline constexpr std::string_view kWholeExperts = "whole_experts";

/// Of which parameters: ranks hold copies of experts along other axes than of all else.
enum class Parameters : std::uint8_t { kAllElse, kExperts, kAny };
/// By the operators of the graph that read it.
Parameters kind_of(const Graph& graph, TensorId parameter);

/// Axes over which matrices of a layer are split, the major one first.
std::vector<Axis> tensor_axes(const std::vector<MeshAxis>& mesh);

/// Axes whose ranks share one expert, the major one first.
std::vector<Axis> expert_tensor_axes(const std::vector<MeshAxis>& mesh);

/// Axes whose ranks hold other experts, the major one first.
std::vector<Axis> expert_axes(const std::vector<MeshAxis>& mesh);

/// Axes over which the samples of a batch are split. Ascending.
std::vector<Axis> sample_axes(const std::vector<MeshAxis>& mesh);

/// Axes over which samples or their tokens are split: their ranks hold copies of the parameters,
/// and gradients are summands of each. Ascending.
std::vector<Axis> copy_axes(const std::vector<MeshAxis>& mesh,
                            Parameters of = Parameters::kAllElse);

/// Axes over which sequences are cut, the major one first: "context" and "context_heads".
std::vector<Axis> context_axes(const std::vector<MeshAxis>& mesh);

/// Of these, those whose ranks can exchange tokens for heads first.
bool exchanges_heads(const MeshAxis& axis);

/// Those of copy_axes() over which ZeRO cuts parameters, gradients and the optimizer's states.
std::vector<Axis> shard_axes(const std::vector<MeshAxis>& mesh,
                             Parameters of = Parameters::kAllElse);

/// Whether copies along these axes are of experts that ZeRO does not cut.
bool are_whole_experts(const std::vector<MeshAxis>& mesh, const std::vector<Axis>& copies);
/// Of the axes over which copies of a parameter lie, those over which ZeRO cuts it. Both ascending.
std::vector<Axis> cut_axes(const std::vector<MeshAxis>& mesh, const std::vector<Axis>& copies);

/// Axes over which parameters can be split: those of tensors and experts, and "pipeline".
/// Ascending.
std::vector<Axis> split_axes(const std::vector<MeshAxis>& mesh);

/// Those of `axes` that split no dimension of a tensor which lies as `dims` says.
std::vector<Axis> without(std::vector<Axis> axes, const std::vector<std::vector<Axis>>& dims);

}  // namespace foreshard
