#include "strategies/program/ir/token_routing.h"

#include <algorithm>
#include <cmath>

namespace foreshard::program {
namespace {

// That none of `draws` distinct ones of `all` is among `special` of them.
double none_of(double special, double draws, double all) {
  double probability = 1;
  for (double i = 0; i < draws; ++i)
    probability *= std::max(all - special - i, 0.0) / (all - i);
  return probability;
}

double binomial(double n, double k) {
  return k < 0 || k > n ? 0
                        : std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1));
}

}  // namespace

double expected_places(const TokenRouting& routing, std::int64_t places) {
  const double experts = routing.experts;
  const double draws = routing.per_token;
  const auto count = static_cast<double>(places);
  const double own = experts / count;  // of one place
  const bool whole = routing.groups % places == 0;
  const bool counts = whole || places % routing.groups == 0;
  const double groups = counts ? routing.groups : 1;
  const double chosen = counts ? routing.groups_per_token : 1;
  const double size = experts / groups;
  double none = 0;
  if (!whole || groups == 1) {  // within one group
    none = 1 - chosen / groups * (1 - none_of(own, draws, chosen * size));
  } else {
    const double here = groups / count;
    for (double taken = 0; taken <= std::min(here, chosen); ++taken)
      none += binomial(here, taken) * binomial(groups - here, chosen - taken) /
              binomial(groups, chosen) * none_of(taken * size, draws, chosen * size);
  }
  return count * (1 - none);
}

}  // namespace foreshard::program
