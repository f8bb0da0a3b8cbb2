/// \file
/// The layers of a model as a strategy runs them. Layers that do the same in each pass share a
/// block: they have the same kind and the same recomputation, and either all or none of them pass a
/// gradient on to the preceding layer.
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
  /// Whether anything before the layer is trained. Only the embedding, which is frozen, precedes
  /// the first layer of a model with adapters; other layers may be frozen too (Model::frozen).
  bool trained_before = true;
  bool operator==(const LayerVariant&) const = default;
};

struct Layers {
  std::vector<LayerVariant> variants{};  ///< Distinct, in order of appearance.
  std::vector<std::int32_t> of_layer{};  ///< layer -> index into `variants`.
};

/// Cost: O(layers).
/// \pre faults_in(strategy, model, ...) is empty.
Layers layers_of(const Model& model, const Strategy& strategy);

/// "layer", "expert_layer"; "layer.recomputed" for the recomputed layers where the strategy
/// recomputes only some; "layer.first" for layers before which nothing is trained.
std::string name_of(const LayerVariant& variant, const Model& model, const Strategy& strategy);

/// The variant of a module that predicts one more token: it is recomputed as layers are, unless
/// only some layers are recomputed. Source: NVIDIA/Megatron-LM,
/// megatron/core/transformer/multi_token_prediction.py (_checkpointed_forward, which leaves out
/// recompute_method "block").
LayerVariant variant_of_prediction(const Strategy& strategy);

/// Number of layers of each piece by variant: [piece, chunk-major][index into Layers::variants].
std::vector<std::vector<std::int64_t>> variants_of_stages(const Model& model,
                                                          const Strategy& strategy);

}  // namespace foreshard
