/// \file
/// The axes of a strategy's mesh: their names and their meaning.
///
///     axis           ranks along it                                     ZeRO shards over it
///     tensor         hold parts of the matrices of a layer              no
///     context        hold copies of the parameters, see other tokens    yes
///     context_heads  as context; they also exchange tokens for heads    yes
///     data           hold copies of the parameters, see other samples   yes
///     replica        as data; each group of "data" holds all shards     no
///     pipeline       hold other layers                                  no
///     whole_experts  (size 1) marks that ZeRO leaves experts whole      no
///
/// "data" and "replica" together are data parallelism; "context" splits the sequences of their
/// samples. Shards over "data" with copies over "replica" are hybrid sharding (HSDP).
///
/// Routed experts have groups of their own among the same ranks. Flatten the tensor-, context- and
/// data-parallel ranks of one set of shards in this order, tensor the fastest. The first
/// `expert_tensor_parallel` neighbours hold parts of one expert, `expert_parallel` such groups hold
/// all experts once, and the further groups hold copies. If a border between these groups falls
/// within an axis, the axis is divided into two there. The pieces of an axis have these names, by
/// what their ranks hold of the experts:
///
///     axis            parts of one expert    other experts           copies
///     tensor          tensor                 tensor_experts          tensor_copies
///     context_heads   context_heads_parts    context_heads_experts   context_heads
///     context         context_parts          context_experts         context
///     data            expert_parts           expert                  data
///
/// For all other parameters every piece has the meaning of its axis. If a parameter is split over
/// an axis, its copies lie along the other axes only. Only copies of experts lie along
/// "whole_experts", so that a list of axes tells whether it belongs to experts that stay whole.
/// Source: Zhao et al., "PyTorch FSDP", VLDB 2023, section 3.2.2 (hybrid sharding); Liu et al.,
/// "MoE Parallel Folding", arXiv 2504.14960; NVIDIA/Megatron-LM, megatron/core/parallel_state.py
/// (one RankGenerator for experts, with expert_tensor_parallel_size and
/// expert_model_parallel_size, and one for all else, both in the order tp-cp-ep-dp-pp).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "strategies/graph/attribute.h"
#include "strategies/graph/graph.h"

namespace foreshard {

inline constexpr std::string_view kWholeExperts = "whole_experts";

/// A set of parameters. Copies of experts lie along other axes than copies of all else.
enum class Parameters : std::uint8_t { kAllElse, kExperts, kAny };
/// Whether `parameter` is of experts or not, by the operators of the graph that read it.
Parameters kind_of(const Graph& graph, TensorId parameter);

/// Axes over which matrices of a layer are split, the major one first.
std::vector<Axis> tensor_axes(const std::vector<MeshAxis>& mesh);

/// Axes whose ranks hold parts of one expert, the major one first.
std::vector<Axis> expert_tensor_axes(const std::vector<MeshAxis>& mesh);

/// Axes whose ranks hold different experts, the major one first.
std::vector<Axis> expert_axes(const std::vector<MeshAxis>& mesh);

/// Axes over which the samples of a batch are split. Ascending.
std::vector<Axis> sample_axes(const std::vector<MeshAxis>& mesh);

/// Axes over which samples or their tokens are split: the ranks hold copies of the parameters, and
/// their gradients are summands. Ascending.
std::vector<Axis> copy_axes(const std::vector<MeshAxis>& mesh,
                            Parameters of = Parameters::kAllElse);

/// Axes over which sequences are split, the major one first: "context" and "context_heads".
std::vector<Axis> context_axes(const std::vector<MeshAxis>& mesh);

/// Whether a context axis is one whose ranks exchange tokens for heads first ("context_heads").
bool exchanges_heads(const MeshAxis& axis);

/// The part of copy_axes() over which ZeRO shards parameters, gradients and optimizer states.
std::vector<Axis> shard_axes(const std::vector<MeshAxis>& mesh,
                             Parameters of = Parameters::kAllElse);

/// Whether copies along these axes belong to experts that ZeRO does not shard.
bool are_whole_experts(const std::vector<MeshAxis>& mesh, const std::vector<Axis>& copies);
/// The axes out of `copies`, along which copies of a parameter lie, over which ZeRO shards it.
/// Both lists ascend.
std::vector<Axis> cut_axes(const std::vector<MeshAxis>& mesh, const std::vector<Axis>& copies);

/// Axes over which parameters can be split: tensor_axes(), expert_axes(), expert_tensor_axes() and
/// "pipeline". Ascending.
std::vector<Axis> split_axes(const std::vector<MeshAxis>& mesh);

/// The elements of `axes` that split no dimension, where `dims` has the axes of each dimension.
std::vector<Axis> without(std::vector<Axis> axes, const std::vector<std::vector<Axis>>& dims);

}  // namespace foreshard
