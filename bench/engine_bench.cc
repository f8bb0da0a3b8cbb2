// How fast the event engines are, side by side in one run: `<engine>/<workload>` per benchmark, and
// at the end a table of the workloads that both ran, with the ratio. The time of an engine includes
// all that it does with a workload; building the workload is not part of it. It is processor time,
// of this process and of the one that SimGrid runs in, so that a busy machine changes ratios
// little. SimGrid runs only the workloads that take it no more than seconds.
#include <benchmark/benchmark.h>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "tests/sim/engine/workloads.h"

namespace foreshard::engine {
namespace {

using Build = std::function<Workload()>;

struct Case {
  std::string name;
  Build build;
  bool on_simgrid;
};

Workload ring(int ranks, double spread) {
  return stepwise_ring(ranks, 1e9 / ranks, 50e9, 5_us, spread);
}

std::vector<Case> cases() {
  return {
      {"ring 64", [] { return ring(64, 0); }, true},
      {"ring 64 jittered", [] { return ring(64, 0.1); }, true},
      {"ring 256", [] { return ring(256, 0); }, true},
      {"ring 256 jittered", [] { return ring(256, 0.1); }, true},
      {"ring 1024", [] { return ring(1024, 0); }, true},
      {"ring 1024 jittered", [] { return ring(1024, 0.1); }, false},
      {"kernels 64 x 1000", [] { return compute_chains(64, 1000, 1); }, true},
      {"kernels 1024 x 1000", [] { return compute_chains(1024, 1000, 1); }, false},
      // Short chains: in long ones, where the end of a flow decides what the next competes with,
      // the last bit of a time grows until makespans differ in the third digit.
      {"fat tree, 10 in flight", [] { return random_fat_tree(16, 16, 10, 100, 1); }, true},
      {"fat tree, 100 in flight", [] { return random_fat_tree(16, 16, 100, 20, 1); }, true},
      {"fat tree, 1000 in flight", [] { return random_fat_tree(16, 16, 1000, 5, 1); }, true},
      {"fat tree, 4000 in flight", [] { return random_fat_tree(32, 32, 4000, 5, 1); }, false},
      {"all-to-all 32 x 8", [] { return all_to_all(32, 8, 1e6); }, true},
      {"all-to-all 128 x 1", [] { return all_to_all(128, 1, 1e6); }, true},
      {"all-to-all 256 x 4", [] { return all_to_all(256, 4, 1e6); }, false},
  };
}

using Engine = Result<Timeline> (*)(const Workload&);
Result<Timeline> fluid(const Workload& w) {
  return run_fluid(w);
}
Result<Timeline> simgrid(const Workload& w) {
  return run_simgrid(w);
}

double processor_seconds() {
  double sum = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& t : {usage.ru_utime, usage.ru_stime})
      sum += static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  }
  return sum;
}

void measure(benchmark::State& state, const Build& build, Engine engine) {
  const Workload workload = build();
  double makespan = 0;
  for (auto _ : state) {
    const double before = processor_seconds();
    const auto timeline = engine(workload);
    state.SetIterationTime(processor_seconds() - before);
    if (!timeline) return state.SkipWithError(timeline.error().message.c_str());
    makespan = timeline->makespan.in_base();
  }
  const auto tasks = static_cast<double>(workload.activity_count());
  state.counters["tasks"] = tasks;
  state.counters["tasks/s"] =
      benchmark::Counter(tasks, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["makespan"] = makespan;
}

// Prints as usual, and remembers the time of one iteration by benchmark.
class Reporter : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.error_occurred || run.run_type != Run::RT_Iteration) continue;
      const std::string name = run.run_name.function_name;
      seconds_[name] = run.real_accumulated_time / static_cast<double>(run.iterations);
      makespan_[name] = run.counters.at("makespan");
    }
    ConsoleReporter::ReportRuns(runs);
  }

  void print_ratios() const {
    std::printf("\n%-26s %12s %12s %8s %16s\n", "workload", "fluid [ms]", "SimGrid [ms]", "ratio",
                "makespans differ");
    for (const Case& c : cases()) {
      const auto own = seconds_.find("fluid/" + c.name);
      const auto other = seconds_.find("simgrid/" + c.name);
      if (own == seconds_.end() || other == seconds_.end()) continue;
      const double a = makespan_.at(own->first);
      const double b = makespan_.at(other->first);
      std::printf("%-26s %12.2f %12.2f %8.1f %16.1e\n", c.name.c_str(), own->second * 1e3,
                  other->second * 1e3, other->second / own->second, std::abs(a - b) / b);
    }
  }

 private:
  std::map<std::string, double> seconds_;
  std::map<std::string, double> makespan_;
};

}  // namespace

int run_benchmarks(int argc, char** argv) {
  for (const Case& c : cases()) {
    const auto add = [&c](const std::string& engine, Engine run) {
      return benchmark::RegisterBenchmark((engine + "/" + c.name).c_str(), measure, c.build, run)
          ->Unit(benchmark::kMillisecond)
          ->UseManualTime();
    };
    add("fluid", fluid)->MinTime(0.2);
    if (c.on_simgrid) add("simgrid", simgrid)->Iterations(1);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  Reporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  reporter.print_ratios();
  return 0;
}

}  // namespace foreshard::engine

int main(int argc, char** argv) {
  return foreshard::engine::run_benchmarks(argc, argv);
}
