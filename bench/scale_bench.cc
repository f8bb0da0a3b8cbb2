// Benchmark: time and memory that the simulator needs for one training step, for clusters of 1,000
// to 100,000 GPUs. Times are processor time, so that a busy machine matters little; one column
// shows them as multiples of a reference, the time of a million memory reads on this machine.
//
//     scale_bench [--csv FILE] [CATALOGUE]     (from the repository's root)
//
// The model is Llama 3 405B: tensor parallel 8, pipeline parallel 16, 126 layers (7 on the first
// stage, 7 on the last, 8 on each other), 16 micro-batches of 1. Collectives are simulated in their
// flat form (Granularity::kFlat); every operator, layer and micro-batch is a task. Each case runs
// in a process of its own, so that its peak memory is its own. tools/scale_plot draws the CSV.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "sim/engine/workload.h"
#include "sim/simulate/build.h"
#include "sim/simulate/fold.h"
#include "sim/study/run.h"
#include "strategies/program/ir/verify.h"
#include "strategies/program/lower/lower.h"

namespace foreshard {
namespace {

// Processor time of this process and of the child processes that it waited for. All that is
// measured runs in one thread, so on an otherwise idle machine this equals wall-clock time.
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

double seconds_of(const std::function<void()>& run) {
  const double start = processor_seconds();
  run();
  return processor_seconds() - start;
}
// The processor time of the fastest of `runs` runs.
double best_of(int runs, const std::function<void()>& run) {
  double best = seconds_of(run);
  for (int i = 1; i < runs; ++i) best = std::min(best, seconds_of(run));
  return best;
}

// The reference, in seconds: a million reads at random places of 64 MiB, each of which depends on
// the one before. It measures the current memory latency of this machine.
double memory_reference() {
  std::vector<std::uint32_t> next(std::size_t{1} << 24);
  for (std::size_t i = 0; i < next.size(); ++i)
    next[i] = static_cast<std::uint32_t>((i * 2654435761u + 12345u) & (next.size() - 1));
  volatile std::uint32_t sink = 0;
  return best_of(3, [&] {
    std::uint32_t at = 0;
    for (int i = 0; i < 1'000'000; ++i) at = next[at] ^ (static_cast<std::uint32_t>(i) & 0xffff);
    sink = at;
  });
}

// One simulated training step, on 128 GPUs (16 nodes) for each data-parallel replica.
struct StepCase {
  std::string name;
  std::int64_t data_parallel;
  bool slow_device = false;  // One GPU runs at half its speed.
};

Result<study::LoadedStudy> load(const StepCase& step, const std::string& catalogue) {
  const std::int64_t nodes = 16 * step.data_parallel;
  std::vector<yaml::Override> overrides{
      {"cluster.nodes", std::to_string(nodes)},
      {"strategy.data_parallel", std::to_string(step.data_parallel)},
      {"strategy.global_batch", std::to_string(16 * step.data_parallel)}};
  if (step.slow_device)
    overrides.push_back({"cluster.degraded", "[{devices: node5/gpu3, speed: 0.5}]"});
  return study::load_study({.study = "bench/llama3-405b.yaml"},
                           {.catalogue = {catalogue}, .overrides = std::move(overrides)});
}

void fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  std::_Exit(2);
}

// The value, or the end of the process with the error's message.
template <class T>
T need(Result<T> result) {
  if (!result) fail(result.error());
  return *std::move(result);
}

// Simulates one step phase by phase, then as a whole; prints the times and writes a line of CSV.
// The peak of memory is read after the
// phases, before the whole runs.
void run_step(const StepCase& step, const std::string& catalogue, double reference, FILE* csv) {
  double last = processor_seconds();
  const auto lap = [&last] {
    const double now = processor_seconds();
    return now - std::exchange(last, now);
  };
  const auto study = need(load(step, catalogue));
  const double loading = lap();
  const auto cluster = need(study::cluster_of(study));
  const double building_cluster = lap();
  const auto program = need(study::program_of(study, cluster));
  const double lowering = lap();
  const auto communicators = sim::communicators_of(program);
  const double finding_groups = lap();
  const auto forms = need(sim::choose_forms(cluster, program, communicators, study.communication));
  const double choosing_forms = lap();
  const auto fold = sim::fold(cluster, program, communicators, forms, true);
  const double folding = lap();
  const auto built = need(sim::build_workload(cluster, program, communicators, forms, fold,
                                              sim::Granularity::kFlat, true));
  static_cast<void>(need(engine::run_fluid(built.workload)));
  const double building_and_running = lap();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);

  last = processor_seconds();
  const auto result = need(study::run_study(study, {}));
  const double whole = lap();
  const auto& prediction = result.prediction;
  const auto peak_mib = static_cast<double>(usage.ru_maxrss) / 1024;
  std::printf(
      "%-24s %7lld %8zu %7zu %11lld %13lld %7.3f %7.3f %7.3f %7.3f %7.3f %7.3f %7.3f %8.3f %8.1f "
      "%8.0f\n",
      step.name.c_str(), static_cast<long long>(program.ranks()), fold.rank_representative.size(),
      forms.kinds(), static_cast<long long>(prediction.tasks),
      static_cast<long long>(prediction.total_tasks), loading, building_cluster, lowering,
      finding_groups, choosing_forms, folding, building_and_running, whole, whole / reference,
      peak_mib);
  if (csv != nullptr && !step.slow_device) {
    std::fprintf(csv, "%lld,%zu,%lld,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%.1f\n",
                 static_cast<long long>(program.ranks()), fold.rank_representative.size(),
                 static_cast<long long>(prediction.tasks), building_cluster, lowering,
                 finding_groups, choosing_forms, folding, building_and_running, whole, peak_mib);
    std::fflush(csv);
  }
}

// Runs `work` in a child process; ends this one too if that fails.
void in_own_process(const std::function<void()>& work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    work();
    std::fflush(nullptr);
    std::_Exit(0);
  }
  int status = 0;
  const bool was_run = waitpid(child, &status, 0) == child;  // no child: fork failed
  if (!was_run || status != 0) std::exit(2);
}

// Runs all cases. Columns of the table: "classes" are the ranks that stand for all others; "routed
// kinds" the different forms of collectives; "of all GPUs" the tasks that the simulated ones stand
// for; "lower +check" includes the verification of the program, "engine +build" the construction of
// the workload.
void run_all(const std::string& catalogue, double reference, FILE* csv) {
  if (csv != nullptr)
    std::fputs(
        "devices,classes,tasks,cluster_s,lowering_s,communicators_s,forms_s,folding_s,"
        "engine_s,whole_s,peak_mib\n",
        csv);
  std::printf(
      "\n%-24s %7s %8s %7s %11s %13s %7s %7s %7s %7s %7s %7s %7s %8s %8s %8s\n"
      "%-24s %7s %8s %7s %11s %13s %7s %7s %7s %7s %7s %7s %7s %8s %8s %8s\n",
      "Llama 3 405B, seconds", "GPUs", "classes", "routed", "tasks", "of all GPUs", "load",
      "cluster", "lower", "groups", "forms", "fold", "engine", "whole", "/ ref", "MiB", "", "", "",
      "kinds", "simulated", "", "", "", "+check", "", "", "", "+build", "", "", "peak");
  const std::vector<StepCase> cases{{"1k", 8},    {"4k", 32},
                                    {"16k", 128}, {"16k, one GPU at 0.5", 128, true},
                                    {"49k", 384}, {"98k, whole pods", 768},
                                    {"100k", 782}};
  for (const StepCase& step : cases)
    in_own_process([&] { run_step(step, catalogue, reference, csv); });
}

}  // namespace

int run(int argc, char** argv) {
  std::string catalogue = "configs";
  std::string csv_file;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--csv" && i + 1 < argc)
      csv_file = argv[++i];
    else
      catalogue = word;
  }
  const double reference = memory_reference();
  std::printf("reference: a million dependent reads of 64 MiB in %.1f ms\n\n", reference * 1e3);
  FILE* const csv = csv_file.empty() ? nullptr : std::fopen(csv_file.c_str(), "w");
  run_all(catalogue, reference, csv);
  if (csv != nullptr) std::fclose(csv);
  return 0;
}

}  // namespace foreshard

int main(int argc, char** argv) {
  return foreshard::run(argc, argv);
}
