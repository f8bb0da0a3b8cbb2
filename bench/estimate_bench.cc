// The search's estimates against the simulations that they stand for: how fast strategies are
// estimated, how far estimated steps are off, whether both have the same order (Kendall's tau), and
// whether any lower bound is above the simulated step.
//
//     estimate_bench [STRATEGIES [CATALOGUE]]      of each study; run from the repository's root
//
// Strategies are drawn from the whole space (level 3) of each study, whether they fit or not.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <random>
#include <string>
#include <vector>

#include "sim/search/estimate.h"
#include "sim/search/space.h"
#include "sim/simulate/cost.h"
#include "sim/study/run.h"
#include "strategies/program/lower/lower.h"
#include "validate/tables/outcome.h"

namespace foreshard {
namespace {

struct Case {
  const char* cluster;
  const char* model;
  const char* framework;
  std::int64_t batch;
};
// Few and many nodes; host-bound and device-bound steps; fused and eager frameworks; experts; split
// sequences; devices of two kinds.
constexpr std::array kCases{
    Case{"two-dgx-a100", "gpt-1.7b", "megatron-lm", 64},
    Case{"two-dgx-a100", "llama3-8b", "pytorch-fsdp", 32},
    Case{"two-dgx-h100", "llama2-13b", "megatron-lm", 128},
    Case{"selene-a100", "gpt-18.4b", "megatron-lm-sc21", 512},
    Case{"two-dgx-h100", "mixtral-8x7b", "megatron-lm", 64},
    Case{"two-dgx-h100", "{extends: llama3-8b, sequence: 65536}", "megatron-lm", 16},
    Case{"mixed-a100-h100", "gpt-1.7b", "megatron-lm", 64},
};

// Processor time, so that other work on the machine does not count.
double seconds_since(std::clock_t begin) {
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

struct Errors {
  std::vector<double> relative;         // estimate against simulation, in percent
  std::vector<accuracy::Pair> pairs{};  // simulation and estimate
  int bounds_above = 0;
};

void print(const std::string& name, const Errors& errors) {
  std::vector<double> size;
  for (const double error : errors.relative) size.push_back(std::abs(error));
  fmt::print(
      "  {}: {} strategies, off by {:.2f} % (median), {:.1f} % (p95), {:.1f} % (most); "
      "{:+.2f} % in the median; tau {:.3f}; bounds above the simulation: {}\n",
      name, size.size(), quantile(size, 0.5), quantile(size, 0.95), quantile(size, 1),
      quantile(errors.relative, 0.5), accuracy::kendall_tau(errors.pairs).value_or(0),
      errors.bounds_above);
}

void run(const Case& of, std::size_t count, const std::string& catalogue, Errors& all) {
  const auto study = study::load_study(
      {.cluster = of.cluster,
       .model = of.model,
       .strategy = fmt::format("{{global_batch: {}, framework: {}}}", of.batch, of.framework),
       .sizes_matter = false},
      {.catalogue = {catalogue}, .overrides = {}});
  if (!study) return fmt::print("{}\n", study.error().message);
  const auto cluster = study::cluster_of(*study);
  if (!cluster) return fmt::print("{}\n", cluster.error().message);
  auto candidates =
      search::enumerate({.level = 3}, study->strategy, study->model, study->pool.size()).candidates;
  std::ranges::shuffle(candidates, std::mt19937(1));  // NOLINT: repeatable on purpose
  fmt::print("{}, {}, {}: {} strategies\n", of.model, of.cluster, of.framework, candidates.size());

  const sim::SimulatedCost cost(*cluster, study->communication);
  search::Estimator estimator(study->model, *cluster, study->pool.devices, cost);
  std::vector<search::Estimate> estimates;
  for (const bool again : {false, true}) {
    const std::clock_t begin = std::clock();
    for (const Strategy& strategy : candidates) {
      const auto estimate = estimator.estimate(strategy);
      if (!again) estimates.push_back(estimate ? *estimate : search::Estimate{});
    }
    fmt::print("  {}: {:.0f} estimates/s of one core\n", again ? "once more" : "first time",
               static_cast<double>(candidates.size()) / seconds_since(begin));
  }
  Errors errors;
  for (std::size_t i = 0; i < std::min(count, candidates.size()); ++i) {
    if (estimates[i].step == Seconds{}) continue;
    auto program = lower::lower(study->model, candidates[i], {});
    if (!program) continue;
    const auto prediction = study::simulated(
        *study, *cluster,
        study::with_launch_times(study->pool.placed(*std::move(program)), *cluster),
        {.critical_path = false});
    if (!prediction) continue;
    const double error = 100 * (estimates[i].step / prediction->step - 1);
    if (std::abs(error) > 8) fmt::print("  {:+.1f} %: {}\n", error, describe(candidates[i]));
    errors.relative.push_back(error);
    errors.pairs.push_back({.measured = prediction->step.in_base(),
                            .predicted = estimates[i].step.in_base(),
                            .low = {},
                            .high = {}});
    if (estimates[i].bound > prediction->step * (1 + 1e-9)) ++errors.bounds_above;
  }
  print("estimate", errors);
  all.relative.insert(all.relative.end(), errors.relative.begin(), errors.relative.end());
  all.pairs.insert(all.pairs.end(), errors.pairs.begin(), errors.pairs.end());
  all.bounds_above += errors.bounds_above;
}

}  // namespace
}  // namespace foreshard

int main(int argc, char** argv) {
  const std::size_t count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 250;
  foreshard::Errors all;
  for (const foreshard::Case& one : foreshard::kCases)
    foreshard::run(one, count, argc > 2 ? argv[2] : "configs", all);
  foreshard::print("all studies", all);
}
