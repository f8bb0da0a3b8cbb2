/// \file
/// How unevenly tokens choose the experts of a layer, and what that costs the rank whose experts
/// are chosen most: all others wait for it.
///
///     strategy:
///       expert_load: {zipf: 0.6}                      # the i-th most popular of a layer: i^-0.6
///       expert_load: {layers: [[0.3, 0.3, 0.2, 0.2]]} # measured shares; several lists: by layer
///
/// With `zipf`, which expert of a layer is the most popular is drawn, for each layer and each of
/// `draws` steps. No expert can be chosen by more than all tokens: with top-k, its share of all
/// choices is 1/k at most, and what is above goes to the others in proportion.
/// Not modelled: that counts of tokens scatter about these shares, which is little where thousands
/// of tokens are routed together; that tokens of one rank choose other experts than those of
/// another.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/yaml/table.h"

namespace foreshard {

struct Model;

struct ExpertLoad {
  std::optional<double> zipf{};
  /// Measured shares of the experts, which add up to 1: of each layer with experts, or one list for
  /// all.
  std::vector<std::vector<double>> layers{};
  std::int64_t draws = 100;  ///< Steps that are drawn.
  std::int64_t seed = 1;

  bool is_balanced() const { return !zipf && layers.empty(); }
  bool operator==(const ExpertLoad&) const = default;
};
const yaml::Table<ExpertLoad>& yaml_table(const ExpertLoad*);

std::int64_t layers_with_experts(const Model& model);

/// The tokens that the busiest of `ranks` ranks gets, as a multiple of its even share. Rank r holds
/// the r-th part of the experts.
/// \pre ranks divides shares.size(); the shares are not negative and add up to 1.
double busiest_rank(const std::vector<double>& shares, std::int64_t ranks);

/// Of each drawn step, the mean of busiest_rank() over the layers with experts; ascending. Measured
/// shares give one.
/// Cost: O(draws x layers x experts).
/// \param ranks  that share the experts of a layer.
std::vector<double> drawn_loads(const ExpertLoad& load, const Model& model, std::int64_t ranks);

/// The mean of drawn_loads(); 1 where the load is balanced.
double mean_load(const ExpertLoad& load, const Model& model, std::int64_t ranks);

}  // namespace foreshard
