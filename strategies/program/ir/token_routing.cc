#include <algorithm>
#include <cmath>

#include "strategies/program/ir/program.h"

namespace foreshard::program {
namespace {

// Probability that none of `draws` distinct elements of `all` is one of `special` elements.
double none_of(double special, double draws, double all) {
  double probability = 1;
  for (double i = 0; i < draws; ++i) probability *= std::max(all - special - i, 0.0) / (all - i);
  return probability;
}

double binomial(double n, double k) {
  return k < 0 || k > n
             ? 0
             : std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1));
}

}  // namespace

double visit_probability(const TokenRouting& routing, double share) {
  constexpr double kRounding = 1e-9;
  const auto is_whole = [](double number) {
    return std::abs(number - std::round(number)) < kRounding * number;
  };
  const double draws = routing.per_token;
  const double own = routing.experts * share;
  const double here = routing.groups * share;  // groups of the place
  const bool holds_groups = is_whole(here);
  const bool counts = holds_groups || is_whole(1 / here);
  const double groups = counts ? routing.groups : 1;
  const double chosen = counts ? routing.groups_per_token : 1;
  const double size = routing.experts / groups;
  if (!holds_groups || groups == 1)  // a part of one group
    return chosen / groups * (1 - none_of(own, draws, chosen * size));
  const double held = std::round(here);
  double none = 0;
  for (double taken = 0; taken <= std::min(held, chosen); ++taken)
    none += binomial(held, taken) * binomial(groups - held, chosen - taken) /
            binomial(groups, chosen) * none_of(taken * size, draws, chosen * size);
  return 1 - none;
}

}  // namespace foreshard::program
