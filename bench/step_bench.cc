// The GPT-3 175B study of 1,024 devices, every operator, layer and micro-batch: where the time from
// the loaded study to the prediction goes. Run from the repository's root, or name the study and
// the catalogue: step_bench [STUDY.yaml CATALOGUE].
#include <benchmark/benchmark.h>
#include <cstdio>
#include <sys/resource.h>

#include "sim/simulate/build.h"
#include "sim/simulate/fold.h"
#include "sim/study/run.h"
#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/lower.h"

namespace foreshard {
namespace {

// Input of the measured parts.
struct Prepared {
  study::LoadedStudy study;
  ClusterView cluster;
  program::Program program;
  sim::Communicators communicators;
  sim::CommunicatorForms forms;
  sim::Folding folding;
};

Result<Prepared> prepare(const std::string& file, const std::string& catalogue) {
  FORESHARD_ASSIGN(auto loaded,
                   study::load_study({.study = file}, {.catalogue = {catalogue}, .overrides = {}}));
  FORESHARD_ASSIGN(auto cluster, study::cluster_of(loaded));
  FORESHARD_ASSIGN(auto program, study::program_of(loaded, cluster));
  auto communicators = sim::communicators_of(program);
  FORESHARD_ASSIGN(auto forms,
                   sim::choose_forms(cluster, program, communicators, loaded.communication));
  auto folding = sim::fold(cluster, program, communicators, forms, true);
  return Prepared{std::move(loaded),        std::move(cluster), std::move(program),
                  std::move(communicators), std::move(forms),   std::move(folding)};
}

void lowering(benchmark::State& state, const Prepared& on) {
  for (auto _ : state) {
    auto program =
        lower::lower(on.study.model, on.study.strategy, {.launch_time = on.program.launch_time});
    benchmark::DoNotOptimize(program);
  }
}

void verifying(benchmark::State& state, const Prepared& on) {
  for (auto _ : state) {
    auto violation = program::verify(on.program);
    benchmark::DoNotOptimize(violation);
  }
}

void folding(benchmark::State& state, const Prepared& on) {
  for (auto _ : state) {
    const auto communicators = sim::communicators_of(on.program);
    const auto forms =
        sim::choose_forms(on.cluster, on.program, communicators, on.study.communication);
    auto folded = sim::fold(on.cluster, on.program, communicators, *forms, true);
    benchmark::DoNotOptimize(folded);
  }
}

void count_tasks(benchmark::State& state, const sim::Prediction& prediction) {
  const auto tasks = static_cast<double>(prediction.tasks);
  state.counters["classes"] = static_cast<double>(prediction.classes.size());
  state.counters["tasks"] = tasks;
  state.counters["tasks/s"] =
      benchmark::Counter(tasks, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["of all devices/s"] = benchmark::Counter(
      static_cast<double>(prediction.total_tasks), benchmark::Counter::kIsIterationInvariantRate);
}

void building_and_running(benchmark::State& state, const Prepared& on, bool coalesce) {
  for (auto _ : state) {
    auto built = sim::build_workload(on.cluster, on.program, on.communicators, on.forms, on.folding,
                                     sim::Granularity::kFlat, coalesce);
    auto times = engine::run_fluid(built->workload);
    benchmark::DoNotOptimize(times);
  }
}

void simulating(benchmark::State& state, const Prepared& on, bool coalesce) {
  sim::Prediction last;
  for (auto _ : state) {
    auto prediction = study::simulated(on.study, on.cluster, on.program, {.coalesce = coalesce});
    last = *std::move(prediction);
  }
  count_tasks(state, last);
}

// All parts from the loaded study on, Cluster and Program included.
void all(benchmark::State& state, const Prepared& on) {
  sim::Prediction last;
  for (auto _ : state) {
    auto run = study::run_study(on.study, {});
    last = run->prediction;
  }
  count_tasks(state, last);
}

}  // namespace

int run_benchmarks(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const std::string file = argc > 1 ? argv[1] : "configs/studies/gpt3-175b-a100-1024.yaml";
  const std::string catalogue = argc > 2 ? argv[2] : "configs";
  const auto prepared = prepare(file, catalogue);
  if (!prepared) {
    std::fprintf(stderr, "%s\n", prepared.error().message.c_str());
    return 2;
  }
  const Prepared& on = *prepared;
  const auto add = [](const char* name, auto&& run) {
    benchmark::RegisterBenchmark(name, run)->Unit(benchmark::kMillisecond);
  };
  add("lower", [&](benchmark::State& state) { lowering(state, on); });
  add("verify", [&](benchmark::State& state) { verifying(state, on); });
  add("fold", [&](benchmark::State& state) { folding(state, on); });
  add("build+fluid", [&](benchmark::State& state) { building_and_running(state, on, true); });
  add("build+fluid/every task",
      [&](benchmark::State& state) { building_and_running(state, on, false); });
  add("simulate", [&](benchmark::State& state) { simulating(state, on, true); });
  add("simulate/every task", [&](benchmark::State& state) { simulating(state, on, false); });
  add("all", [&](benchmark::State& state) { all(state, on); });
  benchmark::RunSpecifiedBenchmarks();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("peak memory: %.0f MiB\n", static_cast<double>(usage.ru_maxrss) / 1024);
  return 0;
}

}  // namespace foreshard

int main(int argc, char** argv) {
  return foreshard::run_benchmarks(argc, argv);
}
