// How fast all strategies of a space are estimated, time and memory: those of GPT-3 175B and of GPT
// 1T on 4,096 A100, with as many layers recomputed as there are. All tables (blocks, routes, forms
// of plans) are built inside the timing.
//
//     space_bench [CATALOGUE]      run from the repository's root
#include <cstdint>
#include <ctime>
#include <fmt/format.h>
#include <string>
#include <sys/resource.h>

#include "sim/search/estimate.h"
#include "sim/search/space.h"
#include "sim/simulate/cost.h"
#include "sim/study/run.h"

namespace foreshard {
namespace {

// Of the processor, so that other work on the machine does not count.
double seconds_since(std::clock_t begin) {
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

struct Seen {
  double strategies = 0;
  double fit = 0;
  Seconds best;
  std::string which;

  // What would be the best is estimated without what is known of others, as a search does.
  void add(const Strategy& strategy, search::Estimator& estimator) {
    ++strategies;
    Result<search::Estimate> estimate = estimator.rank(strategy);
    if (!estimate || estimate->peak > estimate->memory) return;
    ++fit;
    if (best != Seconds{} && estimate->step >= best) return;
    estimate = estimator.estimate(strategy);
    if (best != Seconds{} && estimate->step >= best) return;
    best = estimate->step;
    which = describe(strategy);
  }
};

// Those that split a layer and the pipeline alike follow one another.
void visit(const study::LoadedStudy& study, search::Estimator& estimator, Seen& seen) {
  for (std::int64_t tensor = 1; tensor <= study.model.heads; ++tensor) {
    for (std::int64_t pipeline = 1; pipeline <= study.model.layers; ++pipeline) {
      if (study.model.heads % tensor != 0 || study.model.layers % pipeline != 0) continue;
      const auto found = search::enumerate(
          {.level = 3, .tensor_parallel = {tensor}, .pipeline_parallel = {pipeline}},
          study.strategy, study.model, study.pool.size());
      for (Strategy strategy : found.candidates) {
        const bool recomputes = strategy.recompute != Recompute::kNone;
        const std::int64_t layers = study.model.layers / strategy.stages();
        for (std::int64_t count = 0; count < (recomputes ? layers : 1); ++count) {
          strategy.recompute_layers = count;
          seen.add(strategy, estimator);
        }
      }
    }
  }
}

void run(const char* model, const std::string& catalogue) {
  const auto study = study::load_study({.cluster = "{extends: selene-a100, nodes: 512}",
                                        .model = model,
                                        .strategy = "{global_batch: 4096, framework: megatron-lm}",
                                        .sizes_matter = false},
                                       {.catalogue = {catalogue}, .overrides = {}});
  if (!study) return fmt::print("{}\n", study.error().message);
  const auto cluster = study::cluster_of(*study);
  if (!cluster) return fmt::print("{}\n", cluster.error().message);
  const std::clock_t begin = std::clock();
  const sim::SimulatedCost cost(*cluster, study->communication);
  search::Estimator estimator(study->model, *cluster, study->pool.devices, cost,
                              cluster->host(0).launch_time);
  Seen seen;
  visit(*study, estimator, seen);
  const double seconds = seconds_since(begin);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "{}: {:.0f} strategies in {:.1f} s: {:.0f} a second of one core; {:.0f} fit; up to {} MiB; "
      "the best takes {:.2f} s: {}\n",
      model, seen.strategies, seconds, seen.strategies / seconds, seen.fit, usage.ru_maxrss / 1024,
      seen.best / Seconds::from_base(1), seen.which);
}

}  // namespace
}  // namespace foreshard

int main(int argc, char** argv) {
  for (const char* model : {"gpt3-175b", "gpt-1008b"})
    foreshard::run(model, argc > 1 ? argv[1] : "configs");
}
