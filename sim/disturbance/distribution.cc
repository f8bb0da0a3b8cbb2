// Distributions in YAML and samples from them (distribution.h): speeds of stragglers, the jitter of
// kernels, and the draws of a search's robustness. A sample depends on its key alone.
#include "sim/disturbance/distribution.h"

#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/hash.h"

namespace foreshard::disturbance {
namespace {

constexpr double kCutOff = 4;  // standard deviations

// A number in (0, 1).
double uniform(std::uint64_t key, std::uint64_t draw) {
  return (static_cast<double>(mixed(key ^ mixed(draw)) >> 11) + 0.5) * 0x1p-53;
}

// Standard normal number, cut off at kCutOff on both sides. Source: Box and Muller, "A note on the
// generation of random normal deviates", Ann. Math. Stat. 29(2), 1958.
double normal(std::uint64_t key) {
  for (std::uint64_t draw = 0;; draw += 2) {
    const double x = std::sqrt(-2 * std::log(uniform(key, draw))) *
                     std::cos(2 * std::numbers::pi * uniform(key, draw + 1));
    if (std::abs(x) <= kCutOff) return x;
  }
}

}  // namespace

const yaml::Names<DistributionKind>& yaml_names(const DistributionKind*) {
  static const yaml::Names<DistributionKind> names{
      {"normal", DistributionKind::kNormal, "`mean` and `deviation`; cut off at 4 deviations."},
      {"lognormal", DistributionKind::kLognormal,
       "`median`, and `sigma` of the logarithm; cut off at 4 sigma."},
      {"uniform", DistributionKind::kUniform, "Between `low` and `high`."},
  };
  return names;
}

const yaml::Table<Distribution>& yaml_table(const Distribution*) {
  using D = Distribution;
  static const auto table =
      yaml::Table<D>("distribution", "A positive random number.")
          .required("kind", &D::kind, "The shape, which decides the other keys.")
          .optional("mean", &D::mean, "Mean of a normal distribution.", yaml::positive())
          .optional("deviation", &D::deviation, "Standard deviation of a normal distribution.",
                    yaml::non_negative())
          .optional("median", &D::median, "Median of a lognormal distribution.", yaml::positive())
          .optional("sigma", &D::sigma,
                    "Standard deviation of the logarithm of a lognormal distribution.",
                    yaml::non_negative(), yaml::at_most(2))
          .optional("low", &D::low, "Lower bound of a uniform distribution.", yaml::positive())
          .optional("high", &D::high, "Upper bound of a uniform distribution.", yaml::positive())
          .check("kind", [](const D& distribution) { return fault_in(distribution); });
  return table;
}

std::string fault_in(const Distribution& d) {
  const auto takes = [](const std::optional<double>& first, const std::optional<double>& second) {
    return first.has_value() && second.has_value();
  };
  const int given = static_cast<int>(d.mean.has_value()) +
                    static_cast<int>(d.deviation.has_value()) +
                    static_cast<int>(d.median.has_value()) + static_cast<int>(d.sigma.has_value()) +
                    static_cast<int>(d.low.has_value()) + static_cast<int>(d.high.has_value());
  switch (d.kind) {
    case DistributionKind::kNormal:
      if (!takes(d.mean, d.deviation) || given != 2)
        return "a normal distribution has mean and deviation, and nothing else";
      if (*d.mean - kCutOff * *d.deviation <= 0)
        return "mean - 4 x deviation is not positive, so that negative numbers could be drawn: "
               "take "
               "a smaller deviation, or lognormal";
      return "";
    case DistributionKind::kLognormal:
      if (!takes(d.median, d.sigma) || given != 2)
        return "a lognormal distribution has median and sigma, and nothing else";
      return "";
    case DistributionKind::kUniform:
      if (!takes(d.low, d.high) || given != 2)
        return "a uniform distribution has low and high, and nothing else";
      if (*d.low > *d.high) return "low is above high";
      return "";
  }
  FORESHARD_CHECK(false);
}

double sample(const Distribution& d, std::uint64_t key) {
  switch (d.kind) {
    case DistributionKind::kNormal:
      return *d.mean + *d.deviation * normal(key);
    case DistributionKind::kLognormal:
      return *d.median * std::exp(*d.sigma * normal(key));
    case DistributionKind::kUniform:
      return *d.low + (*d.high - *d.low) * uniform(key, 0);
  }
  FORESHARD_CHECK(false);
}

std::uint64_t key_of(std::uint64_t seed, std::uint64_t kind, std::uint64_t entry,
                     std::uint64_t index) {
  return mixed(mixed(mixed(mixed(seed) ^ kind) ^ entry) ^ index);
}

}  // namespace foreshard::disturbance
