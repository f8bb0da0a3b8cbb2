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
  kLognormal,  ///< exp(normal(ln median, sigma)), cut off at 4 sigma on both sides.
  kUniform,
};

struct Distribution {
  DistributionKind kind = DistributionKind::kNormal;
  std::optional<double> mean{};       ///< Only for kNormal.
  std::optional<double> deviation{};  ///< Only for kNormal.
  std::optional<double> median{};     ///< Only for kLognormal.
  std::optional<double> sigma{};      ///< Standard deviation of the logarithm; only for kLognormal.
  std::optional<double> low{};        ///< Only for kUniform.
  std::optional<double> high{};       ///< Only for kUniform.

  bool operator==(const Distribution&) const = default;
};

const yaml::Names<DistributionKind>& yaml_names(const DistributionKind*);
const yaml::Table<Distribution>& yaml_table(const Distribution*);

/// What is wrong with the distribution, or "": a parameter that is missing or that does not belong
/// to the distribution's kind, or a distribution that can yield a number that is not positive.
std::string fault_in(const Distribution& distribution);

/// The random number that belongs to `key`: the same key gives the same number on every machine
/// whose libm rounds in the same way.
/// \pre fault_in(distribution) is empty.
/// \return > 0
double sample(const Distribution& distribution, std::uint64_t key);

/// A number that depends on all of the arguments and their order: a key for `sample`.
std::uint64_t key_of(std::uint64_t seed, std::uint64_t kind, std::uint64_t entry,
                     std::uint64_t index);

// Purposes of random numbers: numbers drawn for different purposes do not depend on each other.

inline constexpr std::uint64_t kChoice = 1;  ///< Choice of the devices that are stragglers.
inline constexpr std::uint64_t kSpeed = 2;   ///< Speeds of stragglers.
inline constexpr std::uint64_t kJitter = 3;  ///< Times of kernels.

}  // namespace foreshard::disturbance
