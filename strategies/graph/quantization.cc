#include "strategies/graph/quantization.h"

#include "base/check.h"

namespace foreshard {
namespace {

std::vector<PassKind> passes_of(Quantization recipe, bool both) {
  switch (recipe) {
    case Quantization::kNone:
      return {};
    case Quantization::kFp8Delayed:
      return {both ? PassKind::kQuantizeTranspose : PassKind::kQuantize};
    case Quantization::kFp8Current:
      return {PassKind::kZero, PassKind::kReduce, PassKind::kUnary,
              both ? PassKind::kQuantizeTranspose : PassKind::kQuantize};
    case Quantization::kFp8Block:
      return std::vector<PassKind>(both ? 2 : 1, PassKind::kQuantize);
    case Quantization::kFp8Rowwise:
      if (!both) return {PassKind::kQuantize};
      return {PassKind::kQuantize, PassKind::kReduce, PassKind::kQuantize};
    case Quantization::kMxFp8:
      return {both ? PassKind::kQuantizeTwice : PassKind::kQuantize};
    case Quantization::kNvFp4: {
      std::vector<PassKind> passes(both ? 3 : 2, PassKind::kQuantizeFp4);
      passes.front() = PassKind::kReduce;
      return passes;
    }
    case Quantization::kNvFp4Unrotated:
      return {PassKind::kReduce, both ? PassKind::kQuantizeFp4Twice : PassKind::kQuantizeFp4};
  }
  return {};
}

}  // namespace

const yaml::Table<UnquantizedLayers>& yaml_table(const UnquantizedLayers*) {
  static const auto table =
      yaml::Table<UnquantizedLayers>("unquantized layers",
                                     "Layers that compute in 16 bits whatever the recipe.")
          .optional("first", &UnquantizedLayers::first, "So many of the first.",
                    yaml::between(0, 1 << 14))
          .optional("last", &UnquantizedLayers::last, "So many of the last.",
                    yaml::between(0, 1 << 14));
  return table;
}

const yaml::Names<Quantization>& yaml_names(const Quantization*) {
  static const yaml::Names<Quantization> names{
      {"none", Quantization::kNone, "They compute in `precision`."},
      {"fp8-delayed", Quantization::kFp8Delayed,
       "fp8, scaled by tensor, after the maxima of steps before."},
      {"fp8-current", Quantization::kFp8Current, "fp8, scaled by tensor, after its own maximum."},
      {"fp8-block", Quantization::kFp8Block, "fp8, scaled by blocks of 128 elements."},
      {"fp8-rowwise", Quantization::kFp8Rowwise, "fp8, scaled by rows, and by columns."},
      {"mxfp8", Quantization::kMxFp8, "fp8, scaled by blocks of 32 elements."},
      {"nvfp4", Quantization::kNvFp4, "fp4, scaled by blocks of 16 elements and by tensor."},
      {"nvfp4-unrotated", Quantization::kNvFp4Unrotated,
       "Likewise, without the random rotation of what is quantized along columns."},
  };
  return names;
}

bool is_nvfp4(Quantization recipe) {
  return recipe == Quantization::kNvFp4 || recipe == Quantization::kNvFp4Unrotated;
}

Quantization recipe_of_weights(Quantization recipe) {
  return recipe == Quantization::kNvFp4 ? Quantization::kNvFp4Unrotated : recipe;
}

DType dtype_of(Quantization recipe) {
  FORESHARD_CHECK(recipe != Quantization::kNone);
  return is_nvfp4(recipe) ? DType::kFp4 : DType::kFp8;
}

std::vector<Pass> quantize_kernels(Quantization recipe, std::int64_t rows, std::int64_t columns,
                                   DType from, bool both, std::int64_t experts) {
  FORESHARD_CHECK(recipe != Quantization::kNone && experts >= 1);
  std::vector<Pass> passes;
  for (const PassKind kind : passes_of(recipe, both)) {
    // These kernels work on the scale, one number for each tensor.
    const bool is_of_scale = kind == PassKind::kZero || kind == PassKind::kUnary;
    passes.push_back({.kind = kind,
                      .rows = is_of_scale ? experts : rows,
                      .columns = is_of_scale ? 1 : columns,
                      .dtype = is_of_scale ? DType::kFp32 : from,
                      .launches = experts});
  }
  return passes;
}

Scales scales_of(Quantization recipe, bool of_weight) {
  if (recipe != Quantization::kFp8Block) return Scales::kTensor;
  return of_weight ? Scales::kVectors : Scales::kBlocks;
}

Bytes weight_copies(Quantization recipe, bool either_way) {
  if (recipe == Quantization::kNone) return 0_B;
  const bool one_scale = recipe == Quantization::kFp8Delayed || recipe == Quantization::kFp8Current;
  return (either_way && one_scale ? 1 : 2) * size_of(dtype_of(recipe));
}

Bytes gathered_copies(Quantization recipe) {
  const Bytes all = weight_copies(recipe, false);
  const bool needs_both = recipe == Quantization::kMxFp8 || is_nvfp4(recipe);
  return needs_both ? all : all / 2;
}

}  // namespace foreshard
