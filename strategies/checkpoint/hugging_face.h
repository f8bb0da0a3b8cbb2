/// \file
/// Where the tensors of a Hugging Face directory go under a strategy: they keep their names and
/// their shapes, and lie as the parameters of the model that they are.
///
///     model.layers.3.self_attn.k_proj.weight [out, in]   as layers.3.qkv.weight [in, out]
///     model.layers.3.mlp.down_proj.weight                as layers.3.mlp_down.weight
///     model.embed_tokens.weight                          as embedding.weight
///
/// Not modelled: queries, keys and values (or gate and up) in one tensor where tensor parallelism
/// would cut it, as an even cut gives no rank whole heads; parameters cut over data-parallel ranks
/// (ZeRO 3).
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/checkpoint/convert.h"
#include "strategies/parallelism/parameters.h"

namespace foreshard::checkpoint {

/// How the origin begins of what has the names of Hugging Face.
inline constexpr std::string_view kHuggingFace = "Hugging Face ";

/// Whether `source` has the names of Hugging Face.
bool is_hugging_face(const Source& source);

/// \param placed  of the model, of parameters not cut over replicas; others are passed over.
/// \return kUnsupported for a tensor that no parameter of the model corresponds to, or that cannot
///     be cut as the strategy wants: the message names it.
Result<Target> target_by_parameters(const Source& source, const std::vector<PlacedTensor>& placed);

/// Why the tensors of `target` are not the model's parameters, all of them and no more: where in
/// the model their elements are of another number. Nothing if they are.
Status other_elements(const Target& target, const std::vector<PlacedTensor>& placed);

}  // namespace foreshard::checkpoint
