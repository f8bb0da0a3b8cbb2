// Runs a study and makes its report (predict.h).
#include "sim/report/predict.h"

#include <cmath>
#include <optional>
#include <utility>

#include "sim/report/trace.h"
#include "sim/simulate/memory_limit.h"

namespace foreshard::report {

Result<Report> predict(const study::LoadedStudy& study, const sim::SimulateOptions& options,
                       const Extras& extras) {
  if (extras.sensitivities && study.disturbances)
    return study.loader.error_at("disturbances",
                                 "what faster parts buy is told of steps that nothing disturbs",
                                 "leave them out, or --sensitivity");
  sim::SimulateOptions limited = options;
  if (std::isinf(options.max_memory.in_base()))
    if (const auto free = sim::free_memory()) limited.max_memory = *free;
  auto run = study::run_study(study, limited);
  if (!run) return run.error();
  if (!extras.trace.empty()) {
    FORESHARD_TRY(write_trace(extras.trace, run->prediction, run->program));
  }
  std::optional<Bundle> bundle;
  if (extras.bundle) bundle = bundle_of(run->prediction, run->program);
  std::vector<study::Alternative> alternatives;
  if (!run->prediction.fits) alternatives = study::alternatives_to(study, run->cluster);
  std::optional<sim::Sensitivities> worth;
  if (extras.sensitivities) {
    FORESHARD_ASSIGN(
        worth, sim::sensitivities_of(run->cluster, run->program, study.communication, limited));
  }
  Report report = report_of(study, *std::move(run));
  report.bundle = std::move(bundle);
  report.alternatives = std::move(alternatives);
  report.sensitivities = std::move(worth);
  return report;
}

}  // namespace foreshard::report
