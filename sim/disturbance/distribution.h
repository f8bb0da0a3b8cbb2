/// \file
/// A positive random number in YAML: `{kind: normal, mean: 1, deviation: 0.02}`,
/// `{kind: lognormal, median: 1, sigma: 0.1}`, `{kind: uniform, low: 0.8, high: 1}`.
#pragma once

#include <cstdint>
#include <optional>

#include "base/yaml/table.h"

namespace foreshard::disturbance {

enum class DistributionKind : std::uint8_t {
  kNormal,     ///< Cut off at 4 standard deviations on both sides.
  kLognormal,  ///< exp(normal(ln median, sigma)), cut off likewise.
  kUniform,
};

struct Distribution {
  DistributionKind kind = DistributionKind::kNormal;
  std::optional<double> mean{};       ///< For kNormal.
  std::optional<double> deviation{};  ///< For kNormal.
  std::optional<double> median{};     ///< For kLognormal.
  std::optional<double> sigma{};      ///< For kLognormal: of the logarithm.
  std::optional<double> low{};        ///< For kUniform.
  std::optional<double> high{};       ///< For kUniform.

  bool operator==(const Distribution&) const = default;
};

const yaml::Names<DistributionKind>& yaml_names(const DistributionKind*);
const yaml::Table<Distribution>& yaml_table(const Distribution*);

/// What is wrong with it, or "": a parameter that is missing or that its kind does not have, or a
/// number that can be drawn and is not positive.
std::string fault_in(const Distribution& distribution);

/// The number that belongs to `key`: the same key gives the same number on every machine whose libm
/// rounds alike.
/// \pre fault_in(distribution) is empty.
/// \return > 0
double sample(const Distribution& distribution, std::uint64_t key);

/// A number that depends on all of the arguments and their order: a key for `sample`.
std::uint64_t key_of(std::uint64_t seed, std::uint64_t kind, std::uint64_t entry,
                     std::uint64_t index);

}  // namespace foreshard::disturbance
