#include "strategies/parallelism/expert_load.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <random>

#include "strategies/graph/model.h"

namespace foreshard {
namespace {

double sum_of(const std::vector<double>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0.0);
}

// Cuts shares above `most` to it; the other shares take the excess in proportion.
void cap(std::vector<double>& shares, double most) {
  std::ranges::sort(shares, std::ranges::greater());
  double capped = 0;  // sum of the shares that were cut to `most`
  double rest = sum_of(shares);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double scale = (1 - capped) / rest;
    if (shares[i] * scale <= most) {
      for (std::size_t j = i; j < shares.size(); ++j) shares[j] *= scale;
      return;
    }
    rest -= shares[i];
    shares[i] = most;
    capped += most;
  }
}

std::vector<double> zipf_shares(double exponent, const Model& model) {
  std::vector<double> shares;
  for (std::int64_t i = 1; i <= model.experts; ++i)
    shares.push_back(std::pow(static_cast<double>(i), -exponent));
  const double sum = sum_of(shares);
  for (double& share : shares) share /= sum;
  cap(shares, 1 / static_cast<double>(model.experts_per_token));
  return shares;
}

std::string fault_in_shares(const ExpertLoad& load) {
  for (const auto& shares : load.layers) {
    const bool is_negative =
        std::ranges::any_of(shares, [](double share) { return !(share >= 0); });
    constexpr double kRounding = 1e-3;
    if (is_negative || std::abs(sum_of(shares) - 1) > kRounding)
      return fmt::format("shares of a layer's experts are not negative and add up to 1, not {:.6g}",
                         sum_of(shares));
  }
  return {};
}

}  // namespace

std::int64_t layers_with_experts(const Model& model) {
  std::int64_t count = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    if (model.kind_of_layer(layer).experts) ++count;
  return count;
}

const yaml::Table<ExpertLoad>& yaml_table(const ExpertLoad*) {
  static const auto table =
      yaml::Table<ExpertLoad>("expert_load", "How unevenly tokens choose experts.")
          .optional("zipf", &ExpertLoad::zipf,
                    "The i-th most popular expert of a layer is chosen in proportion to i to the "
                    "power of minus this.",
                    yaml::between(0, 16))
          .optional("layers", &ExpertLoad::layers,
                    "Measured shares of the experts: a list for each layer with experts, or one "
                    "for all.")
          .optional("draws", &ExpertLoad::draws, "Steps that are drawn (zipf).",
                    yaml::between(1, 100'000))
          .optional("seed", &ExpertLoad::seed, "Of the drawn popularities (zipf).",
                    yaml::at_least(0))
          .check("layers", fault_in_shares)
          .check("zipf", [](const ExpertLoad& load) -> std::string {
            if (load.zipf && !load.layers.empty())
              return "the load is drawn (zipf) or measured (layers), not both; leave one out";
            const ExpertLoad usual;
            if (!load.zipf && (load.draws != usual.draws || load.seed != usual.seed))
              return "without zipf nothing is drawn; leave draws and seed out";
            return {};
          });
  return table;
}

double busiest_rank(const std::vector<double>& shares, std::int64_t ranks) {
  const auto each = static_cast<std::ptrdiff_t>(shares.size()) / ranks;
  double most = 0;
  for (auto first = shares.begin(); first != shares.end(); first += each)
    most = std::max(most, std::accumulate(first, first + each, 0.0));
  return most * static_cast<double>(ranks);
}

std::vector<double> drawn_loads(const ExpertLoad& load, const Model& model, std::int64_t ranks) {
  if (load.is_balanced()) return {1};
  std::vector<double> loads;
  if (!load.zipf) {
    double sum = 0;
    for (const auto& shares : load.layers) sum += busiest_rank(shares, ranks);
    return {sum / static_cast<double>(load.layers.size())};
  }
  std::vector<double> shares = zipf_shares(*load.zipf, model);
  const std::int64_t layers = layers_with_experts(model);
  std::mt19937_64 random(static_cast<std::uint64_t>(load.seed));
  for (std::int64_t draw = 0; draw < load.draws; ++draw) {
    double sum = 0;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      // Not std::shuffle, whose draws depend on the standard library.
      for (std::size_t i = shares.size(); i > 1; --i)
        std::swap(shares[i - 1], shares[random() % i]);
      sum += busiest_rank(shares, ranks);
    }
    loads.push_back(sum / static_cast<double>(layers));
  }
  std::ranges::sort(loads);
  return loads;
}

double mean_load(const ExpertLoad& load, const Model& model, std::int64_t ranks) {
  const std::vector<double> loads = drawn_loads(load, model, ranks);
  return sum_of(loads) / static_cast<double>(loads.size());
}

}  // namespace foreshard
