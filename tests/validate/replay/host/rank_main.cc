// One rank of a Program on the host, under mpirun: what the tests of the executor start.
//
//     mpirun -n 2 host_rank PROGRAM.json [--verify] [--steps 5] [--spoil KIND] [--tasks]
//
// Rank 0 prints the steps' times (the latest rank's), every rank its faults. Exit code 0, or 1 if
// there is a fault, or 2 for an error.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mpi.h>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

#include "strategies/program/ir/json.h"
#include "strategies/program/ir/verify.h"
#include "validate/replay/executor.h"
#include "validate/replay/plan.h"
#include "validate/replay/store.h"
#include "validate/replay/watch.h"

namespace {

using namespace foreshard;          // NOLINT(google-build-using-namespace): a main
using namespace foreshard::replay;  // NOLINT(google-build-using-namespace)

int failed(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 2);
  return 2;
}

// Makes this rank do something else than the Program says: what verification must find.
void spoil(RankPlan& plan, std::string_view kind) {
  if (kind.empty()) return;
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    Operation& operation = plan.operations[i];
    if (operation.communicator < 0) continue;
    const auto members =
        plan.communicators[static_cast<std::size_t>(operation.communicator)].members.size();
    if (kind == "root" && operation.root >= 0)
      operation.root = (operation.root + 1) % static_cast<std::int32_t>(members);
    if (kind == "ordinal") operation.ordinal += plan.rank == 0 ? 1 : 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  const auto value_of = [&](std::string_view name) -> std::string {
    const auto found = std::find(arguments.begin(), arguments.end(), name);
    return found == arguments.end() || found + 1 == arguments.end() ? std::string()
                                                                    : std::string(*(found + 1));
  };
  const auto has = [&](std::string_view name) {
    return std::find(arguments.begin(), arguments.end(), name) != arguments.end();
  };
  auto store = lone_store();
  auto executor = make_host_executor({}, *store);
  if (!executor) return failed(executor.error());
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto text = read_file(std::string(arguments.at(0)), 256_MiB);
  if (!text) return failed(text.error());
  const auto program = program::program_from_json(*text);
  if (!program) return failed(program.error());
  if (const Status fault = program::verify(*program); !fault.ok()) return failed(fault.error());
  auto plan = plan_rank(*program, rank);
  if (!plan) return failed(plan.error());
  RankPlan mine = *std::move(plan);
  spoil(mine, value_of("--spoil"));
  Watch watch;
  if (const Status fault = (*executor)->prepare(mine, watch); !fault.ok())
    return failed(fault.error());

  std::size_t faults = 0;
  if (has("--verify")) {
    const auto verification = (*executor)->verify(watch);
    if (!verification) return failed(verification.error());
    faults = verification->faults.size();
    for (const std::string& fault : verification->faults) std::printf("%s\n", fault.c_str());
    std::printf("rank %d: %lld operations, %lld elements, %zu faults\n", rank,
                static_cast<long long>(verification->operations),
                static_cast<long long>(verification->elements), faults);
  }
  const std::string count = value_of("--steps");
  const int steps = count.empty() ? 1 : std::atoi(count.c_str());  // NOLINT: a test's argument
  std::map<std::string, std::vector<double>> durations;
  std::vector<double> totals;
  for (int i = 0; i < steps; ++i) {
    const auto times = (*executor)->step(watch);
    if (!times) return failed(times.error());
    double total = times->total / 1_ms;
    double latest = 0;
    MPI_Reduce(&total, &latest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    totals.push_back(latest);
    if (i > 0)
      for (std::size_t k = 0; k < times->finish.size(); ++k)
        durations[describe(mine, k).substr(0, 110)].push_back((times->finish[k] - times->start[k]) /
                                                              1_us);
  }
  if (rank == 0) {
    for (const double total : totals) std::printf("%.3f ms\n", total);
    if (has("--tasks"))
      for (auto& [name, all] : durations) {
        std::vector<double>& list = all;
        std::sort(list.begin(), list.end());
        const auto at = [&](double q) {
          return list[static_cast<std::size_t>(q * static_cast<double>(list.size() - 1))];
        };
        std::printf("%-110s %5zu  %10.1f us  [%10.1f, %10.1f]\n", name.c_str(), list.size(),
                    at(0.5), at(0.1), at(0.9));
      }
    const auto machine = (*executor)->machine();
    for (const auto& [key, value] : machine.facts)
      std::printf("# %s: %s\n", key.c_str(), value.c_str());
    std::printf("# %s, peak %.3f MB, scratch %.3f MB\n", (*executor)->device().c_str(),
                (*executor)->peak_memory() / 1_MB, (*executor)->scratch() / 1_MB);
  }
  std::fflush(stdout);
  return faults > 0 ? 1 : 0;
}
