// Places of a token's experts, counted over all choices that are equally likely.

#include "tests/test.h"

#include "strategies/program/ir/program.h"

namespace foreshard::program {
namespace {

// All sets of `k` of the `items`, visited.
template <class Visit>
void each_choice(const std::vector<int>& items, int k, std::vector<int>& taken, std::size_t from,
                 Visit visit) {
  if (k == 0) return visit(taken);
  for (std::size_t i = from; i < items.size(); ++i) {
    taken.push_back(items[i]);
    each_choice(items, k - 1, taken, i + 1, visit);
    taken.pop_back();
  }
}

double counted(const TokenRouting& routing, int places) {
  std::vector<int> groups(static_cast<std::size_t>(routing.groups));
  for (int g = 0; g < routing.groups; ++g) groups[static_cast<std::size_t>(g)] = g;
  const int size = routing.experts / routing.groups;
  const int of_place = routing.experts / places;
  double sum = 0;
  double choices = 0;
  std::vector<int> chosen;
  each_choice(groups, routing.groups_per_token, chosen, 0, [&](const std::vector<int>& some) {
    std::vector<int> experts;
    for (const int g : some)
      for (int e = 0; e < size; ++e) experts.push_back(g * size + e);
    std::vector<int> taken;
    each_choice(experts, routing.per_token, taken, 0, [&](const std::vector<int>& these) {
      std::set<int> where;
      for (const int expert : these) where.insert(expert / of_place);
      sum += static_cast<double>(where.size());
      choices += 1;
    });
  });
  return sum / choices;
}

TEST(TokenRouting, VisitsAsManyPlacesAsAreCounted) {
  for (const TokenRouting& routing :
       {TokenRouting{8, 2}, TokenRouting{8, 3}, TokenRouting{8, 8}, TokenRouting{16, 3, 4, 2},
        TokenRouting{16, 4, 8, 3}, TokenRouting{12, 2, 4, 1}})
    for (const int places : {1, 2, 4, 8}) {
      if (routing.experts % places != 0) continue;
      EXPECT_NEAR(expected_places(routing, places), counted(routing, places), 1e-9)
          << routing.per_token << " of " << routing.experts << " in " << routing.groups_per_token
          << " of " << routing.groups << " groups, " << places << " places";
    }
}

// DeepSeek-V3: 8 of 256 experts in 4 of 8 groups, a group on each of 8 nodes of 8 ranks.
TEST(TokenRouting, OfDeepSeekReachesFewerThanFourNodes) {
  const TokenRouting routing{256, 8, 8, 4};
  EXPECT_NEAR(expected_places(routing, 8), 3.63, 0.005);
  EXPECT_NEAR(expected_places(routing, 64), 7.36, 0.005);
  EXPECT_NEAR(expected_places({256, 8}, 8), 5.29, 0.005);
}

}  // namespace
}  // namespace foreshard::program
