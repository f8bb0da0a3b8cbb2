/// \file
/// Recipes by which linear layers compute in fewer than 16 bits, and the kernels that convert a
/// tensor of 16 bits to the narrow type. Models, strategies and the precision of graph operators
/// (operators/precision.cc) use them.
///
/// A tensor of one scale per 128, 32 or 16 elements is quantized twice: along its rows, with the
/// elements of one scale next to each other in a row, and along its columns.
///
///     recipe        one scale per                   kernels of a tensor, bytes per element
///     fp8-delayed   tensor, from earlier maxima     quantize and transpose: 2 read, 1 + 1 written
///     fp8-current   tensor, from its maximum        the maximum: 2 read; then as above
///     fp8-block     128 (weights: 128 x 128)        quantize along rows, and along columns:
///                                                   2 read, 1 written each
///     fp8-rowwise   row; in the 2nd copy, column    along rows: 2 read, 1 written; maxima of
///                                                   columns: 2 read; along columns: 2 read,
///                                                   1 written
///     mxfp8         32                              both at once: 2 read, 1 + 1 written
///     nvfp4         16, and one per tensor          the maximum: 2 read;
///                                                   along rows: 2 read, 1/2 written;
///                                                   along columns: 2 read, 1/2 written
///     nvfp4-unrotated  as nvfp4                     the maximum: 2 read;
///                                                   both at once: 2 read, 1/2 + 1/2 written
///
/// With nvfp4, what is quantized along columns is first rotated at random, except weights, which
/// are quantized as with nvfp4-unrotated (recipe_of_weights). Source: NVIDIA/TransformerEngine pull
/// request 2177, transformer_engine/pytorch/csrc/quantizer.cpp (NVFP4Quantizer::quantize_impl),
/// transformer_engine/common/recipe (NVFP4BlockScaling).
///
/// The three products of a linear layer sum over different dimensions: the forward product over the
/// rows of both operands, the products of the gradients over the columns of one or both.
/// Source: NVIDIA/TransformerEngine, transformer_engine/common/recipe (the recipes) and
/// transformer_engine/pytorch/tensor (what each casts and transposes); fp8-rowwise: pytorch/ao
/// 024fe94fd, torchao/float8 (config.py, float8_linear.py), as torch.compile fuses it. With
/// fp8-rowwise, the all-gathers of sequence parallelism are in 16 bits (pytorch/torchtitan,
/// models/llama3/parallelize_llama.py: gathers in fp8 need one scale per tensor).
/// Not modelled: products with one scale per row take up to a tenth longer (pytorch/pytorch issue
/// 147971); torchtitan's second gather of inputs that it recomputes; casts that are
/// fused into the norm or activation before them; scales themselves (1/32 of mxfp8's bytes, 1/8 of
/// nvfp4's), the random rotation of what nvfp4 quantizes along columns (its arithmetic hides behind
/// the reads), and their rearrangement for the matrix units; the reduction of maxima over ranks;
/// the second copy of what the all-gathers of sequence parallelism move (with block scales, both
/// copies of a gradient; with one scale, the transpose after the gather); that a forward pass
/// without backward pass needs one copy only; in graphs of users, the copies of weights that the
/// setting `to` of a product allows.
#pragma once

#include <cstdint>
#include <vector>

#include "base/yaml/names.h"
#include "base/yaml/table.h"

#include "strategies/program/ir/kernel.h"

namespace foreshard {

/// A recipe of the table above; kNone: linear layers compute in the precision of the rest.
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

/// Layers at both ends of a model that compute in 16 bits whatever the recipe. Their activations,
/// weights and gathers are in 16 bits, too. Multi-token prediction modules do not count as layers.
/// Source: NVIDIA/Megatron-LM, megatron/core/fp8_utils.py (get_fp8_context).
/// Not modelled: other layers in 16 bits; single products of a layer in 16 bits.
struct UnquantizedLayers {
  std::int64_t first = 0;  ///< Number of layers at the front.
  std::int64_t last = 0;   ///< Number of layers at the end.
  bool any() const { return first > 0 || last > 0; }
  bool operator==(const UnquantizedLayers&) const = default;
};
const yaml::Table<UnquantizedLayers>& yaml_table(const UnquantizedLayers*);

/// Whether products are in fp4.
bool is_nvfp4(Quantization recipe);

/// The recipe for weights where activations and gradients have the recipe `recipe`.
Quantization recipe_of_weights(Quantization recipe);

/// The type in which products compute. \pre `recipe` is not kNone.
DType dtype_of(Quantization recipe);

/// The kernels that quantize a tensor of `rows` x `columns` elements of type `from` (16 bits)
/// for the products; with `both`, also the copy along the other dimension, which the gradient of a
/// weight reads. `rows` counts the rows of all `experts`; the rows of each expert are a separate
/// tensor, with kernels of its own.
/// fp8-current takes four kernels: one sets the maximum to 0, one finds it, one makes the scale,
/// one copies. Source: NVIDIA/TransformerEngine, transformer_engine/common/recipe/
/// current_scaling.cu (zero_amax_kernel, amax_kernel, compute_scale_from_amax_kernel).
/// Not modelled: kernels that quantize for several experts, which later versions have; fewer
/// kernels in compiled casts (torchao).
/// \pre `recipe` is not kNone, `experts` >= 1.
std::vector<Pass> quantize_kernels(Quantization recipe, std::int64_t rows, std::int64_t columns,
                                   DType from, bool both = true, std::int64_t experts = 1);

/// How a product applies scales: with `of_weight` the product that computes a weight's gradient,
/// else the forward product and the product that computes an input's gradient.
/// Not modelled: the cost of block scales that the matrix units apply themselves (mxfp8, nvfp4).
Scales scales_of(Quantization recipe, bool of_weight);

/// Bytes of the quantized copies of a weight, per element; 0 for kNone. There is one copy for the
/// forward product and one for the input's gradient, or one for both: with one scale per tensor,
/// where the matrix units read a copy `either_way`, by rows or by columns.
Bytes weight_copies(Quantization recipe, bool either_way);
/// Bytes that data-parallel ranks gather per element of a weight that they hold only quantized: one
/// copy, or both if one cannot be made from the other (block scales of 32 or 16 elements).
Bytes gathered_copies(Quantization recipe);

}  // namespace foreshard
