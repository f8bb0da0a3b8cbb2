// Time and memory to estimate all strategies of a space: GPT-3 175B and GPT 1T on 4,096 A100, with
// one order of ranks, and with each way to recompute for each number of layers. All tables (blocks,
// routes, shapes of plans) are built inside the timing.
//
//     space_bench [CATALOGUE]      run from the repository's root
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <fmt/format.h>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "sim/search/estimate.h"
#include "sim/search/family.h"
#include "sim/search/space.h"
#include "sim/simulate/cost.h"
#include "sim/study/run.h"

namespace foreshard {
namespace {

// Processor time, so that other work on the machine does not count.
double seconds_since(std::clock_t begin) {
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// Counts the candidates of families, and finds the fastest that fits. Some are estimated again by
// themselves, without what is known of others, as a search does with the best.
class Seen : public search::FamilyVisitor {
 public:
  explicit Seen(search::Estimator& estimator) : estimator_(estimator) {}

  double strategies = 0;
  double fit = 0;
  search::Estimate best;
  std::string which;
  double worst = 1;  // largest ratio of two estimates of one candidate
  double sum = 0;
  double checked = 0;

  void begin(const search::Family& family) { family_ = &family; }
  void end() {  // ends a family
    for (const search::FamilyMember& member : again_) {
      const auto estimate = estimator_.estimate(family_->strategy_of(member));
      if (!estimate) continue;
      const double ratio = *step_of(member) / estimate->step;
      worst = std::max({worst, ratio, 1 / ratio});
      sum += std::abs(ratio - 1);
      ++checked;
    }
    again_.clear();
    steps_.clear();
  }

  bool is_of_interest(Seconds) const override { return true; }
  void count_slower(std::int64_t, Seconds) override {}
  bool fits(const search::FamilyMember&, const search::Estimate& estimate) const override {
    return estimate.peak <= estimate.memory;
  }
  void add_large(const search::FamilyMember&, const search::Estimate&) override { ++strategies; }
  bool is_large(const search::Estimate& least) const override { return least.peak > least.memory; }
  void count_large(std::int64_t members) override { strategies += static_cast<double>(members); }
  void add(const search::FamilyMember& member, const search::Estimate& estimate) override {
    ++strategies;
    ++fit;
    constexpr std::int64_t kChecked = 20'000;  // one candidate of this many is estimated again
    if (static_cast<std::int64_t>(fit) % kChecked == 0) {
      again_.push_back(member);
      steps_.push_back(estimate.step);
    }
    if (best.step != Seconds{} && estimate.step >= best.step) return;
    best = estimate;
    which = describe(family_->strategy_of(member));
  }

 private:
  const Seconds* step_of(const search::FamilyMember& member) const {
    return &steps_[static_cast<std::size_t>(std::ranges::find(again_, member) - again_.begin())];
  }

  search::Estimator& estimator_;
  const search::Family* family_ = nullptr;
  std::vector<search::FamilyMember> again_;
  std::vector<Seconds> steps_;
};

// Strategies with the same tensor and pipeline parallelism follow one another.
void visit(const study::LoadedStudy& study, search::Estimator& estimator, Seen& seen) {
  const auto choices = search::recompute_choices(study.model, study.strategy);
  for (std::int64_t tensor = 1; tensor <= study.model.heads; ++tensor) {
    for (std::int64_t pipeline = 1; pipeline <= study.model.layers; ++pipeline) {
      if (study.model.heads % tensor != 0 || study.model.layers % pipeline != 0) continue;
      const auto found = search::enumerate({.level = 3,
                                            .tensor_parallel = {tensor},
                                            .pipeline_parallel = {pipeline},
                                            .recompute = {Recompute::kNone}},
                                           study.strategy, study.model, study.pool.size());
      for (const Strategy& strategy : found.candidates) {
        const search::Family family(strategy, study.model, choices);
        seen.begin(family);
        if (const auto done = estimator.family(family, seen); !done.ok())
          fmt::print("{}: {}\n", describe(strategy), done.error().message);
        seen.end();
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
  search::Estimator estimator(study->model, *cluster, study->pool.devices, cost);
  Seen seen(estimator);
  visit(*study, estimator, seen);
  const double seconds = seconds_since(begin);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "{}: {:.0f} strategies in {:.1f} s: {:.0f} a second of one core; {:.0f} fit, {:.0f} a "
      "second; "
      "up to {} MiB; "
      "the best takes {:.2f} s: {}; {:.0f} of them estimated again by themselves: off by {:.3f} % "
      "on average, {:.2f} % at most\n",
      model, seen.strategies, seconds, seen.strategies / seconds, seen.fit, seen.fit / seconds,
      usage.ru_maxrss / 1024, seen.best.step / Seconds::from_base(1), seen.which, seen.checked,
      100 * seen.sum / std::max(seen.checked, 1.0), 100 * (seen.worst - 1));
}

}  // namespace
}  // namespace foreshard

int main(int argc, char** argv) {
  for (const char* model : {"gpt3-175b", "gpt-1008b"})
    foreshard::run(model, argc > 1 ? argv[1] : "configs");
}
