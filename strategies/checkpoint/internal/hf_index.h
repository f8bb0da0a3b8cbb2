/// \file
/// `model.safetensors.index.json`, which says in which file each tensor of a Hugging Face directory
/// is.
///
///     {"metadata": {"total_size": 144}, "weight_map": {"t0": "rank-00000.safetensors"}}
///
/// total_size is the bytes of all tensors, without headers.
/// Source: https://huggingface.co/docs/transformers/v4.49.0/big_models, "Sharded checkpoints".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "strategies/checkpoint/convert.h"

namespace foreshard::checkpoint::internal {

inline constexpr std::string_view kHfIndexName = "model.safetensors.index.json";

/// The index of the files that the plan writes. Nothing where readers of Hugging Face directories
/// could not use it: names are not Hugging Face's, files are no safetensors, or a tensor is cut or
/// padded.
std::optional<std::string> hf_index(const ConversionPlan& plan);

}  // namespace foreshard::checkpoint::internal
