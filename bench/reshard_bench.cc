// Time to rank the plans from one layout to another on a 16 x 16 x 16 mesh of 4,096 H100, by closed
// form: on a cluster whose routes have not been asked for before ("first"), and on one whose routes
// are known ("again"). The reference is the time to price the direct transfer alone on the same
// cluster ("direct"). Run from the repository's root, or name the catalogue: reshard_bench
// [CATALOGUE].
#include <benchmark/benchmark.h>
#include <chrono>
#include <cstdio>
#include <optional>

#include "sim/simulate/cost.h"
#include "strategies/graph/layout.h"
#include "strategies/reshard/plan.h"
#include "strategies/reshard/price.h"
#include "topology/cluster_config.h"

namespace foreshard::reshard {
namespace {

struct Case {
  const char* name;
  Shape shape;
  Attribute from;
  Attribute to;
};

std::vector<Case> cases() {
  // Axis 0 spans two nodes of 8; axes 1 and 2 go across nodes.
  return {
      {"S(a) to S(b), 3-D",
       {4096, 4096, 8192},
       {.dims = {{0}, {1}, {2}}},
       {.dims = {{1}, {2}, {0}}}},
      {"joint S to joint S, 4-D",
       {4096, 64, 128, 4096},
       {.dims = {{0, 1, 2}, {}, {}, {}}},
       {.dims = {{}, {}, {}, {2, 1, 0}}}},
      {"partial, split to split, 4-D",
       {4096, 64, 128, 4096},
       {.dims = {{}, {1}, {}, {2}}, .partial = sums_over({0})},
       {.dims = {{2, 0}, {}, {}, {}}}},
      {"partial to whole, 3-D",
       {4096, 4096, 1024},
       {.dims = {{}, {}, {}}, .partial = sums_over({0, 1, 2})},
       {.dims = {{}, {}, {}}}},
  };
}

// Counts and time of the last ranking.
std::int64_t planned = 0;
std::int64_t asked = 0;
double pricing = 0;  // milliseconds

void ranking(benchmark::State& state, const ClusterView& cluster,
             const comm::Parameters& communication, const Case& c, bool first) {
  const TensorSpec tensor{.dtype = DType::kBf16, .shape = c.shape};
  const ProcessMesh mesh = mesh_from({{"a", 16}, {"b", 16}, {"c", 16}});
  const Placement placement{.cluster = &cluster};
  const auto nodes = nodes_of_ranks(placement);
  std::optional<sim::SimulatedCost> cost;
  cost.emplace(cluster, communication);
  for (auto _ : state) {
    if (first) {
      state.PauseTiming();
      cost.emplace(cluster, communication);
      state.ResumeTiming();
    }
    StepPricer price(tensor, *cost, placement);
    asked = 0;
    pricing = 0;
    const auto found = candidates(tensor, {mesh, c.from}, {mesh, c.to},
                                  [&](const Step& step) {
                                    ++asked;
                                    const auto begin = std::chrono::steady_clock::now();
                                    auto time = price(step);
                                    pricing += std::chrono::duration<double, std::milli>(
                                                   std::chrono::steady_clock::now() - begin)
                                                   .count();
                                    return time;
                                  },
                                  {.node_of_rank = nodes});
    planned = found ? static_cast<std::int64_t>(found->plans.size()) : -1;
  }
  state.counters["plans"] = static_cast<double>(planned);
  state.counters["prices"] = static_cast<double>(asked);
  state.counters["pricing_ms"] = pricing;
}

void direct(benchmark::State& state, const ClusterView& cluster,
            const comm::Parameters& communication, const Case& c) {
  const TensorSpec tensor{.dtype = DType::kBf16, .shape = c.shape};
  const ProcessMesh mesh = mesh_from({{"a", 16}, {"b", 16}, {"c", 16}});
  const Placement placement{.cluster = &cluster};
  Attribute from = c.from;
  from.partial.clear();
  const sim::SimulatedCost cost(cluster, communication);
  for (auto _ : state) {
    StepPricer price(tensor, cost, placement);
    auto time = price(
        {.primitive = Primitive::kTransfer, .from = {mesh, from}, .to = {mesh, c.to}, .axes = {}});
    benchmark::DoNotOptimize(time);
  }
}

}  // namespace

int run_benchmarks(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  yaml::Loader loader({.catalogue = {argc > 1 ? argv[1] : "configs"}});
  auto config = loader.read_file<ClusterConfig>("configs/clusters/h100-16384.yaml");
  auto communication = loader.read_file<comm::Parameters>("configs/communication/nccl.yaml");
  if (!config || !communication) {
    std::fprintf(stderr, "%s\n", (config ? communication.error() : config.error()).message.c_str());
    return 2;
  }
  ClusterConfig smaller = *config;
  smaller.nodes = 512;
  const auto cluster = build_cluster(smaller, loader);
  if (!cluster) {
    std::fprintf(stderr, "%s\n", cluster.error().message.c_str());
    return 2;
  }
  const auto all = cases();
  for (const Case& c : all) {
    const auto add = [&](const std::string& what, auto&& run) {
      benchmark::RegisterBenchmark((what + "/" + c.name).c_str(), run)
          ->Unit(benchmark::kMillisecond)
          ->MinTime(0.2);
    };
    add("first", [&](benchmark::State& s) { ranking(s, *cluster, *communication, c, true); });
    add("again", [&](benchmark::State& s) { ranking(s, *cluster, *communication, c, false); });
    add("direct", [&](benchmark::State& s) { direct(s, *cluster, *communication, c); });
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace foreshard::reshard

int main(int argc, char** argv) {
  return foreshard::reshard::run_benchmarks(argc, argv);
}
