/// \file
/// How unevenly tokens choose the experts of a layer, and the extra load of the rank whose experts
/// are chosen most: all others wait for it.
///
///     strategy:
///       expert_load: {zipf: 0.6}                      # the i-th most popular of a layer: i^-0.6
///       expert_load: {layers: [[0.3, 0.3, 0.2, 0.2]]} # measured shares; several lists: by layer
///
/// With `zipf`, the order of the experts by popularity is drawn at random for each layer and each
/// of `draws` steps. No expert can be chosen by more than all tokens: with top-k, its share of all
/// choices is at most 1/k, and any excess goes to the other experts in proportion.
/// Not modelled: the scatter of token counts about these shares, which is small where thousands of
/// tokens are routed together; ranks whose tokens choose other experts than another rank's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/yaml/table.h"

namespace foreshard {

struct Model;

struct ExpertLoad {
  std::optional<double> zipf{};
  /// Measured shares of the experts: [layer with experts][expert], or one list for all layers. Each
  /// list adds up to 1.
  std::vector<std::vector<double>> layers{};
  std::int64_t draws = 100;  ///< Number of steps that are drawn.
  std::int64_t seed = 1;

  bool is_balanced() const { return !zipf && layers.empty(); }
  bool operator==(const ExpertLoad&) const = default;
};
const yaml::Table<ExpertLoad>& yaml_table(const ExpertLoad*);

std::int64_t layers_with_experts(const Model& model);

/// Load of the busiest of `ranks` ranks: its tokens as a multiple of an even share. Rank r holds
/// the r-th part of the experts.
/// \pre ranks divides shares.size(); the shares are not negative and add up to 1.
double busiest_rank(const std::vector<double>& shares, std::int64_t ranks);

/// The mean of busiest_rank() over the layers with experts, one per drawn step, ascending. Measured
/// shares give one entry.
/// Cost: O(draws x layers x experts).
/// \param ranks  ranks that share the experts of a layer.
std::vector<double> drawn_loads(const ExpertLoad& load, const Model& model, std::int64_t ranks);

/// The mean of drawn_loads(); 1 where the load is balanced.
double mean_load(const ExpertLoad& load, const Model& model, std::int64_t ranks);

}  // namespace foreshard
