// Plans between layouts: how much time they save and how long it takes to find them.
//
//   table 1  named conversions on two DGX H100: chosen plan against gather and slice, simulated,
//            and the bound that no plan can beat
//   table 2  conversions of a tensor on a mesh of 4,096 ranks: ranking by closed form alone, and
//            with the best three simulated; processor time, the first on a cluster whose routes
//            have not been asked for before
//
// Run from the repository's root, or name the catalogue: choice_bench [CATALOGUE].
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "tests/sim/reshard/cases.h"

#include "sim/simulate/cost.h"
#include "sim/study/study.h"
#include "strategies/reshard/choose.h"
#include "topology/cluster_config.h"

namespace foreshard::reshard {
namespace {

// Processor time of this process: a busy machine changes it little.
double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

void named(const ClusterView& cluster, const comm::Parameters& communication) {
  const sim::SimulatedCost cost(cluster, communication);
  std::printf("%-28s %10s %10s %6s %10s  %s\n", "on ", "chosen", "gather", "ratio", "bound",
              "plan");
  for (const Case& one : named_cases()) {
    const auto choice = choose(one.tensor, one.from, one.to, cost, {.cluster = &cluster});
    if (!choice) {
      std::printf("%-28s %s\n", one.name.c_str(), choice.error().message.c_str());
      continue;
    }
    const Seconds gather = choice->alternatives[*choice->baseline].time();
    const double ratio = gather / choice->best().time();
    const bool possible = gather / choice->bound.time >= 2;
    std::printf("%-28s %10s %10s %6.2f %10s  %s%s\n", one.name.c_str(),
                format(choice->best().time()).c_str(), format(gather).c_str(), ratio,
                format(choice->bound.time).c_str(), choice->best().plan.name.c_str(),
                ratio >= 2 ? ""
                : possible ? "  BELOW 2"
                           : "  (2 is impossible)");
  }
}

void large(const ClusterView& cluster, const comm::Parameters& communication) {
  const TensorSpec tensor{.dtype = DType::kBf16, .shape = {8192, 4096, 4096}};
  const auto mesh = mesh_from({{"tp", 8}, {"cp", 16}, {"dp", 32}});
  const auto layout = [&](std::vector<std::vector<Axis>> dims, std::vector<Partial> partial = {}) {
    return Layout{.mesh = mesh,
                  .attribute = {.dims = std::move(dims), .partial = std::move(partial)}};
  };
  struct Conversion {
    const char* name;
    Layout from;
    Layout to;
  };
  const std::vector<Conversion> conversions{
      {"[dp,cp,tp] -> [tp,dp,cp]", layout({{2}, {1}, {0}}), layout({{0}, {2}, {1}})},
      {"[dp,cp,tp] -> [dp+cp,-,tp]", layout({{2}, {1}, {0}}), layout({{2, 1}, {}, {0}})},
      {"[dp,cp,-] sum(tp) -> [dp,tp,cp]", layout({{2}, {1}, {}}, {{0}}), layout({{2}, {0}, {1}})},
      {"[dp+cp+tp,-,-] -> [-,dp+cp,tp]", layout({{2, 1, 0}, {}, {}}), layout({{}, {2, 1}, {0}})},
      {"[-,-,-] -> [dp,cp,tp]", layout({{}, {}, {}}), layout({{2}, {1}, {0}})},
  };
  std::printf("\n%-34s %11s %11s %10s %10s  %s\n", "4,096 ranks", "ranked in", "with sim.",
              "chosen", "gather", "plan");
  for (const Conversion& one : conversions) {
    const auto run = [&](std::int32_t simulate, double& seconds) {
      const double start = processor_seconds();
      const sim::SimulatedCost cost(cluster, communication);  // cold
      auto choice =
          choose(tensor, one.from, one.to, cost, {.cluster = &cluster}, {.simulate = simulate});
      seconds = processor_seconds() - start;
      return choice;
    };
    double ranking = 0;
    double all = 0;
    const auto ranked = run(0, ranking);
    const auto choice = run(3, all);
    if (!choice) {
      std::printf("%-34s %s\n", one.name, choice.error().message.c_str());
      continue;
    }
    std::printf("%-34s %8.1f ms %8.1f ms %10s %10s  %s%s\n", one.name, 1e3 * ranking, 1e3 * all,
                format(choice->best().time()).c_str(),
                format(choice->alternatives[*choice->baseline].time()).c_str(),
                choice->best().plan.name.c_str(), choice->best().simulated ? "" : " (closed form)");
  }
}

int run(const std::string& catalogue) {
  yaml::Loader loader({.catalogue = {catalogue}, .overrides = {}});
  const auto communication =
      loader.read_ref<comm::Parameters>(study::kDefaultCommunication, "communication");
  const auto two = loader.read_ref<ClusterConfig>("two-dgx-h100");
  const auto many = loader.read_ref<ClusterConfig>("h100-16384");
  if (!communication || !two || !many) {
    std::fprintf(stderr, "%s\n",
                 (!communication ? communication.error()
                  : !two         ? two.error()
                                 : many.error())
                     .message.c_str());
    return 2;
  }
  named(*build_cluster(*two, loader), *communication);
  large(*build_cluster(*many, loader), *communication);
  return 0;
}

}  // namespace
}  // namespace foreshard::reshard

int main(int argc, char** argv) {
  return foreshard::reshard::run(argc > 1 ? argv[1] : "configs");
}
