// What simulating only the best three costs: the chosen plan against the fastest of all candidates,
// each simulated, over random conversions.
#include <cstdio>

#include "base/quantity.h"
#include "tests/sim/reshard/cases.h"
#include "tests/sim/reshard/catalogue.h"
#include "tests/test.h"

#include "sim/simulate/cost.h"
#include "strategies/reshard/choose.h"
#include "strategies/reshard/plan.h"

namespace foreshard::reshard {
namespace {

// Time lost against the fastest of all plans, relative.
struct Record {
  int cases = 0;
  double sum = 0;
  double worst = 0;
  std::string where{};

  double mean() const { return sum / cases; }
  void add(const Choice& choice, const Choice& all, const std::string& name) {
    add(choice.best(), all, name);
  }
  void add(const Alternative& taken, const Choice& all, const std::string& name) {
    ++cases;
    const Seconds best = all.best().time();
    if (!(best > 0_s)) return;
    const double regret = taken.time() / best - 1;
    sum += regret;
    if (regret <= worst) return;
    worst = regret;
    where = name + ": " + taken.plan.name + ", " + format(taken.time()) + ", not " +
            all.best().plan.name + ", " + format(best);
  }
  void print(const char* what) const {
    std::printf("regret, %s: mean %.3f %%, worst %.2f %% of %d\n  %s\n", what, 100 * mean(),
                100 * worst, cases, where.c_str());
  }
};

TEST(Regret, OfSimulatingOnlyTheBestThreeIsSmall) {
  // Nodes whose devices have an adapter each, and nodes whose devices share them.
  const std::vector<std::vector<yaml::Override>> clusters{
      {},
      {{"nodes", "4"}},
      {{"nodes", "4"}, {"node", "hgx-a100-4x100g"}},
      {{"nodes", "2"}, {"node", "a100-pcie-8gpu"}},
      {{"nodes", "4"}, {"node", "dgx-1v"}},
  };
  constexpr int kCasesOfEach = 40;
  Record three;
  Record one_alone;
  int with_choice = 0;
  for (std::size_t c = 0; c < clusters.size(); ++c) {
    const Shipped shipped = reshard::shipped("two-dgx-h100", clusters[c]);
    const sim::SimulatedCost cost(*shipped.cluster, shipped.communication);
    const Placement placement{.cluster = &*shipped.cluster};
    const auto ranks = static_cast<std::int32_t>(shipped.cluster->devices().size());
    std::mt19937 random(static_cast<unsigned>(c));
    for (int i = 0; i < kCasesOfEach; ++i) {
      const Case one = random_case(random, ranks);
      const std::string name = "cluster " + std::to_string(c) + ", " + describe(one.tensor) + ", " +
                               describe(one.from) + " to " + describe(one.to);
      SCOPED_TRACE(name);
      const auto with = [&](std::int32_t keep, std::int32_t simulate) {
        return value_of(choose(one.tensor, one.from, one.to, cost, placement,
                               {.keep = keep, .simulate = simulate}));
      };
      const Choice all = with(64, 64);
      with_choice += all.alternatives.size() > 3 ? 1 : 0;
      three.add(with(12, 3), all, name);
      // What the closed form would have taken, without any simulation.
      one_alone.add(all.alternatives.front(), all, name);
    }
  }
  std::printf("%d conversions with more than 3 plans\n", with_choice);
  three.print("best 3 simulated");
  one_alone.print("closed form alone");
  EXPECT_LE(three.mean(), 0.05);
  EXPECT_LE(three.worst, 0.05);
}

}  // namespace
}  // namespace foreshard::reshard
