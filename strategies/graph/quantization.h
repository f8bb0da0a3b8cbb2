/// \file
/// Recipes by which linear layers compute in fewer than 16 bits: what it takes to bring a tensor of
/// 16 bits into the narrow type.
///
///     recipe        scales                          kernels of a tensor, bytes an element
///     fp8-delayed   a tensor's, from maxima before  quantize and transpose: 2 read, 1 + 1 written
///     fp8-current   a tensor's, from its maximum    the maximum: 2 read; then as above
///     fp8-block     of 128, or of 128 x 128         quantize along rows, and along columns:
///                                                   2 read, 1 written each
///     fp8-rowwise   a row's, and a column's         along rows: 2 read, 1 written; maxima of
///                                                   columns: 2 read; along these: 2 read,
///                                                   1 written
///     mxfp8         of 32                           both at once: 2 read, 1 + 1 written
///     nvfp4         of 16, and a tensor's           the maximum: 2 read;
///                                                   along rows: 2 read, 1/2 written;
///                                                   along columns: likewise
///     nvfp4-unrotated  likewise                     the maximum: 2 read;
///                                                   both at once: 2 read, 1/2 + 1/2 written
///
/// Weights of nvfp4 are not rotated either. Source: NVIDIA/TransformerEngine pull request 2177,
/// transformer_engine/pytorch/csrc/quantizer.cpp (NVFP4Quantizer::quantize_impl),
/// transformer_engine/common/recipe (NVFP4BlockScaling).
///
/// Every product of a linear layer multiplies along another dimension: forward along the rows of
/// both operands, and the gradients' products along columns of one or both.
/// Source: NVIDIA/TransformerEngine, transformer_engine/common/recipe (the recipes) and
/// transformer_engine/pytorch/tensor (what each casts and transposes); fp8-rowwise: pytorch/ao
/// 024fe94fd, torchao/float8 (config.py, float8_linear.py), as torch.compile fuses it. There ranks
/// gather along a sequence in 16 bits (pytorch/torchtitan, models/llama3/parallelize_llama.py: only
/// one scale a tensor goes with gathers in fp8).
/// Not modelled: that products with a scale a row take up to a tenth longer (pytorch/pytorch issue
/// 147971), and that torchtitan's ranks, which make inputs again, gather them again, too; casts
/// that are fused into the norm or activation before them; scales themselves (1/32 of mxfp8's
/// bytes, 1/8 of nvfp4's), the random rotation of what nvfp4 quantizes along columns (its
/// arithmetic hides behind the reads), and their rearrangement for the matrix units; the reduction
/// of maxima over ranks; the second copy of what ranks gather along a sequence (both of a
/// gradient's with scales of blocks, the transpose after the gather with one scale); that forward
/// passes alone need one copy; of general graphs, the copies of weights that a product's `to`
/// allows.
#pragma once

#include <cstdint>
#include <vector>

#include "base/yaml/names.h"
#include "base/yaml/table.h"

#include "strategies/program/ir/kernel.h"

namespace foreshard {

enum class Quantization : std::uint8_t {
  kNone,
  kFp8Delayed,
  kFp8Current,
  kFp8Block,
  kMxFp8,
  kNvFp4,
  kFp8Rowwise,
  kNvFp4Unrotated
};

const yaml::Names<Quantization>& yaml_names(const Quantization*);

/// Layers at the ends of a model that compute in 16 bits whatever the recipe, with everything they
/// keep, hold and gather. Modules that predict one more token are none of them.
/// Source: NVIDIA/Megatron-LM, megatron/core/fp8_utils.py (get_fp8_context).
/// Not modelled: layers in between; single products of a layer.
struct UnquantizedLayers {
  std::int64_t first = 0;  ///< So many from the front.
  std::int64_t last = 0;   ///< So many up to the end.
  bool any() const { return first > 0 || last > 0; }
  bool operator==(const UnquantizedLayers&) const = default;
};
const yaml::Table<UnquantizedLayers>& yaml_table(const UnquantizedLayers*);

/// Whether products are in fp4.
bool is_nvfp4(Quantization recipe);

/// By which weights are quantized where activations and gradients are by `recipe`.
Quantization recipe_of_weights(Quantization recipe);

/// What products compute in. \pre `recipe` is not kNone.
DType dtype_of(Quantization recipe);

/// What brings a tensor of `rows` x `columns` elements from 16 bits to what products read: `both`
/// with the copy along the other dimension, which the gradient of a weight reads. The rows of each
/// of `experts` are a tensor of their own, with kernels of its own.
/// fp8-current takes four kernels: one sets the maximum to 0, one finds it, one makes the scale,
/// one copies. Source: NVIDIA/TransformerEngine, transformer_engine/common/recipe/
/// current_scaling.cu (zero_amax_kernel, amax_kernel, compute_scale_from_amax_kernel).
/// Not modelled: kernels that quantize for several experts, which later versions have; that
/// compiled casts (torchao) need fewer.
/// \pre `recipe` is not kNone, `experts` >= 1.
std::vector<Pass> quantize_kernels(Quantization recipe, std::int64_t rows, std::int64_t columns,
                                   DType from, bool both = true, std::int64_t experts = 1);

/// Of a forward product and of an input's gradient, or of a weight's gradient.
/// Not modelled: where matrix units apply scales of blocks themselves (mxfp8, nvfp4), what that
/// costs.
Scales scales_of(Quantization recipe, bool of_weight);

/// Of each element of a weight: a copy for the forward product and one for its input's gradient; or
/// one for both, with one scale a tensor and matrix units that read it `either_way`.
Bytes weight_copies(Quantization recipe, bool either_way);
/// What data-parallel ranks gather of each element of a weight that is held quantized alone: one
/// copy, or both where one does not follow from the other.
Bytes gathered_copies(Quantization recipe);

}  // namespace foreshard
