/// \file
/// The layers of a model as a strategy runs them. Those that do the same in each pass share a
/// block: they are of the same kind, as much of them is computed again, and either all or none of
/// them hand a gradient on to what is before them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/graph/model.h"
#include "strategies/parallelism/strategy.h"

namespace foreshard {

struct LayerVariant {
  std::size_t kind = 0;  ///< Index into Model::layer_kinds() of the strategy.
  Recomputation recomputation{};
  /// Whether something before the layer is trained. Before the first one of a model with adapters
  /// there is the embedding alone, which is frozen; others may be frozen too (Model::frozen).
  bool trained_before = true;
  bool operator==(const LayerVariant&) const = default;
};

struct Layers {
  std::vector<LayerVariant> variants{};  ///< Distinct, in the order in which they appear.
  std::vector<std::int32_t> of_layer{};  ///< Index into `variants`, by layer.
};

/// Cost: O(layers).
/// \pre faults_in(strategy, model, ...) is empty.
Layers layers_of(const Model& model, const Strategy& strategy);

/// "layer", "expert_layer"; where the strategy recomputes some layers only, those are
/// "layer.recomputed"; the first layer where nothing before it is trained is "layer.first".
std::string name_of(const LayerVariant& variant, const Model& model, const Strategy& strategy);

/// Of a module that predicts one more token: computed again as layers are, unless some layers only
/// are. Source: NVIDIA/Megatron-LM, megatron/core/transformer/multi_token_prediction.py
/// (_checkpointed_forward, which leaves out recompute_method "block").
LayerVariant variant_of_prediction(const Strategy& strategy);

/// Layers of each stage by variant: [stage, chunk-major][index into Layers::variants].
std::vector<std::vector<std::int64_t>> variants_of_stages(const Model& model,
                                                          const Strategy& strategy);

}  // namespace foreshard
