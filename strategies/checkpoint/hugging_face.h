/// \file
/// Where the tensors of a Hugging Face directory go under a strategy. They keep their names and
/// shapes, and get the layout of the model's parameter that they correspond to.
///
///     model.layers.3.self_attn.k_proj.weight [out, in]   as layers.3.qkv.weight [in, out]
///     model.layers.3.mlp.down_proj.weight                as layers.3.mlp_down.weight
///     model.embed_tokens.weight                          as embedding.weight
///
/// Not modelled: queries, keys and values (or gate and up) in one tensor where tensor parallelism
/// would cut it, as an even cut gives no rank whole heads; parameters cut over data-parallel ranks
/// (ZeRO 3).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/checkpoint/convert.h"
#include "strategies/parallelism/parameters.h"

namespace foreshard::checkpoint {

/// Prefix of the origin of checkpoints whose tensors have the names of Hugging Face.
inline constexpr std::string_view kHuggingFace = "Hugging Face ";

/// Whether the tensors of `source` have the names of Hugging Face.
bool is_hugging_face(const Source& source);

/// The target in which each tensor has the layout of its parameter.
/// \param placed  the model's tensors; only parameters that are not cut over replicas are used.
/// \return kUnsupported for a tensor that no parameter of the model corresponds to, or that cannot
///     be cut as the strategy wants: the message names it.
Result<Target> target_by_parameters(const Source& source, const std::vector<PlacedTensor>& placed);

/// Checks that the tensors of `target` are exactly the model's parameters, by their number of
/// elements.
/// \return an error that names where in the model the number differs.
Status other_elements(const Target& target, const std::vector<PlacedTensor>& placed);

/// `model.safetensors.index.json`, which says in which file each tensor of a Hugging Face directory
/// is; total_size is the bytes of all tensors, without headers:
///
///     {"metadata": {"total_size": 144}, "weight_map": {"t0": "rank-00000.safetensors"}}
///
/// Source: https://huggingface.co/docs/transformers/v4.49.0/big_models, "Sharded checkpoints".
inline constexpr std::string_view kHfIndexName = "model.safetensors.index.json";

/// The index of the files that the plan writes. Nothing where readers of Hugging Face directories
/// could not use it: names are not Hugging Face's, files are no safetensors, or a tensor is cut or
/// padded.
std::optional<std::string> hf_index(const ConversionPlan& plan);

}  // namespace foreshard::checkpoint
