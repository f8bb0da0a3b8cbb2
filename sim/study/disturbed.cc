#include "sim/study/disturbed.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/quantity.h"

namespace foreshard::study {
namespace {

Result<sim::Prediction> one_run(const LoadedStudy& study, const ClusterView& cluster,
                                const program::Program& program, sim::SimulateOptions options,
                                std::int64_t run) {
  FORESHARD_ASSIGN(
      const auto plan,
      disturbance::plan_of(
          *study.disturbances, cluster, study.used(), run,
          [&](const std::string& key, const std::string& message, const std::string& help) {
            return study.loader.error_at("disturbances." + key, message, help);
          }));
  // A plan that changes only constant speeds needs no disturbed simulation.
  options.disturbances = plan.only_slow() ? nullptr : &plan;
  const auto slow = disturbance::slowed(cluster, plan);
  FORESHARD_ASSIGN(sim::Prediction prediction,
                   simulated(study, slow ? *slow : cluster, program, options));
  prediction.disturbances =
      sim::DisturbanceSummary{.seed = plan.seed, .hits = plan.hits, .steps = {}, .interrupted = 0};
  return prediction;
}

}  // namespace

Result<sim::Prediction> simulate_disturbed(const LoadedStudy& study, const ClusterView& cluster,
                                           const program::Program& program,
                                           const sim::SimulateOptions& options) {
  const std::int64_t runs = disturbance::random(*study.disturbances) ? study.disturbances->runs : 1;
  std::vector<std::pair<Seconds, std::int64_t>> ended;
  std::vector<Seconds> steps;
  for (std::int64_t run = 0; runs > 1 && run < runs; ++run) {
    FORESHARD_ASSIGN(const auto brief, one_run(study, cluster, program,
                                               {.engine = options.engine,
                                                .granularity = options.granularity,
                                                .fold = options.fold,
                                                .coalesce = options.coalesce,
                                                .critical_path = false},
                                               run));
    if (brief.interruption) continue;
    ended.emplace_back(brief.step, run);
    steps.push_back(brief.step);
  }
  std::int64_t shown = 0;
  if (!ended.empty()) {
    std::ranges::sort(ended);
    shown = ended[(ended.size() - 1) / 2].second;
  }
  FORESHARD_ASSIGN(sim::Prediction result, one_run(study, cluster, program, options, shown));
  if (runs == 1 && !result.interruption) steps.push_back(result.step);
  if (runs < study.disturbances->runs)
    result.warnings.push_back(
        {.code = "disturbances",
         .message = "nothing about the disturbances is random: one run stands "
                    "for the " +
                    std::to_string(study.disturbances->runs) + " asked for"});
  for (const disturbance::Hit& hit : result.disturbances->hits) {
    if (hit.at < result.step || result.interruption) continue;
    result.warnings.push_back({.code = "disturbances",
                               .message = hit.kind + " (" + hit.effect + ") from " +
                                          format(hit.at) +
                                          " on comes too late: the step is over "
                                          "after " +
                                          format(result.step)});
  }
  result.disturbances->interrupted = runs - static_cast<std::int64_t>(steps.size());
  result.disturbances->steps = std::move(steps);
  return result;
}

}  // namespace foreshard::study
