#include "sim/simulate/sensitivity.h"

#include <algorithm>

namespace foreshard::sim {

Result<Sensitivities> sensitivities_of(const ClusterView& cluster, const program::Program& program,
                                       const comm::Parameters& communication,
                                       const SimulateOptions& options) {
  FORESHARD_ASSIGN(const auto scalable, ScalableStep::of(cluster, program, communication, options));
  std::vector<double> factors(scalable.speeds().size(), 1.0);
  const engine::Workload workload = scalable.at(factors);
  FORESHARD_ASSIGN(const auto times, engine::run_fluid(workload));
  const auto slopes = engine::slopes_of_makespan(workload, times, scalable.slopes());
  Sensitivities result{.step = times.makespan, .of = {}};
  for (std::size_t s = 0; s < factors.size(); ++s) {
    factors[s] = Sensitivities::kMore;
    FORESHARD_ASSIGN(const auto faster, engine::run_fluid(scalable.at(factors)));
    factors[s] = 1;
    const double elasticity = result.step > 0_s ? slopes[s] / result.step.in_base() : 0;
    result.of.push_back({scalable.speeds()[s], elasticity, faster.makespan});
  }
  std::ranges::stable_sort(result.of, {}, &Sensitivity::elasticity);
  return result;
}

}  // namespace foreshard::sim
