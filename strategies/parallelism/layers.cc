#include "strategies/parallelism/layers.h"

#include <algorithm>

namespace foreshard {

Layers layers_of(const Model& model, const Strategy& strategy) {
  Layers layers;
  const std::vector<LayerKind> kinds = model.layer_kinds(strategy.unquantized_layers);
  std::int64_t layer = 0;
  for (const std::int64_t count : layers_of_stages(strategy, model.layers)) {
    for (std::int64_t i = 0; i < count; ++i, ++layer) {
      const LayerKind kind = model.kind_of_layer(layer, strategy.unquantized_layers);
      LayerVariant variant{
          .kind = static_cast<std::size_t>(std::ranges::find(kinds, kind) - kinds.begin()),
          .trained_before = model.is_trained_before(layer)};
      const bool runs_back = variant.trained_before || !kind.frozen;
      if (runs_back && (strategy.recompute_layers == 0 || i < strategy.recompute_layers))
        variant.recomputation = strategy.recomputation();
      auto known = std::ranges::find(layers.variants, variant);
      if (known == layers.variants.end()) known = layers.variants.insert(known, std::move(variant));
      layers.of_layer.push_back(static_cast<std::int32_t>(known - layers.variants.begin()));
    }
  }
  return layers;
}

std::string name_of(const LayerVariant& variant, const Model& model, const Strategy& strategy) {
  std::string name = name_of(model.layer_kinds(strategy.unquantized_layers)[variant.kind]);
  if (strategy.recompute_layers > 0 && variant.recomputation.how != Recompute::kNone)
    name += ".recomputed";
  if (!variant.trained_before) name += ".first";
  return name;
}

LayerVariant variant_of_prediction(const Strategy& strategy) {
  LayerVariant variant;
  if (strategy.recompute_layers == 0) variant.recomputation = strategy.recomputation();
  return variant;
}

std::vector<std::vector<std::int64_t>> variants_of_stages(const Model& model,
                                                          const Strategy& strategy) {
  const auto stages = layers_of_stages(strategy, model.layers);
  std::vector<std::vector<std::int64_t>> counts;
  const bool are_alike = model.layer_kinds(strategy.unquantized_layers).size() == 1 &&
                         !model.adapters && !model.frozen && strategy.recompute_layers == 0;
  if (are_alike) {
    for (const std::int64_t count : stages) counts.push_back({count});
    return counts;
  }
  const Layers layers = layers_of(model, strategy);
  std::size_t layer = 0;
  for (const std::int64_t count : stages) {
    auto& of_stage = counts.emplace_back(layers.variants.size(), 0);
    for (std::int64_t i = 0; i < count; ++i)
      ++of_stage[static_cast<std::size_t>(layers.of_layer[layer++])];
  }
  return counts;
}

}  // namespace foreshard
