// Problems of choices: by hand, then against all choices on random problems.
#include "tests/test.h"

#include "sim/search/graph/eliminate.h"
#include "sim/search/graph/problem.h"

namespace foreshard::search {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Two operators that may be split or not; to split one alone costs a conversion of 5.
Problem two_operators() {
  Problem problem;
  problem.variables = {{.name = "a", .cost = {8, 2}, .load = {4, 2}},
                       {.name = "b", .cost = {3, 4}, .load = {4, 2}}};
  problem.add(0, 1, [](std::size_t i, std::size_t j) { return i == j ? 0.0 : 5.0; });
  return problem;
}

// By hand: 8 + 3, 8 + 4 + 5, 2 + 3 + 5, 2 + 4.
TEST(Solve, WeighsWhatIsBetween) {
  const auto answer = value_of(solve(two_operators()));
  EXPECT_EQ(answer.choice, (std::vector<std::size_t>{1, 1}));
  EXPECT_DOUBLE_EQ(answer.cost, 6);
  EXPECT_DOUBLE_EQ(answer.bound, 6);
  EXPECT_EQ(answer.by, "dynamic programming");
}

// a split and b not costs 10 and loads 6; below 6 only both split are allowed.
TEST(Solve, StaysWithinTheLimit) {
  Problem problem = two_operators();
  problem.variables[0].cost = {1, 9};
  problem.variables[1].cost = {1, 9};
  problem.limit = 6;
  const auto answer = value_of(solve(problem));
  EXPECT_LE(problem.load_of(answer.choice), 6);
  EXPECT_DOUBLE_EQ(answer.cost, 15);  // one of the two split: 1 + 9 + 5
  EXPECT_NEAR(answer.bound, 15, 1e-9);
  problem.limit = 3;
  EXPECT_FALSE(solve(problem));
}

TEST(Solve, KnowsWhatIsForbidden) {
  Problem problem = two_operators();
  problem.variables[0].cost = {kForbidden, 2};
  problem.add(0, 1,
              [](std::size_t i, std::size_t j) { return i == 1 && j == 1 ? kForbidden : 0.0; });
  EXPECT_EQ(value_of(solve(problem)).choice, (std::vector<std::size_t>{1, 0}));
  problem.variables[1].cost = {kForbidden, 1};
  EXPECT_FALSE(solve(problem));
}

// The order in which a pair is named does not matter.
TEST(Problem, TurnsPairs) {
  Problem problem;
  problem.variables = {{.name = "a", .cost = {0, 0}}, {.name = "b", .cost = {0, 0, 0}}};
  problem.add(1, 0, [](std::size_t b, std::size_t a) { return static_cast<double>(10 * b + a); });
  EXPECT_DOUBLE_EQ(problem.cost_of({1, 2}), 21);
}

Problem random_problem(std::mt19937& random) {
  Problem problem;
  const std::size_t count = 1 + random() % 7;
  const auto number = [&] { return static_cast<double>(random() % 1000) / 10; };
  for (std::size_t v = 0; v < count; ++v) {
    Variable variable{.name = "v"};
    const std::size_t options = 1 + random() % 4;
    for (std::size_t i = 0; i < options; ++i) {
      variable.cost.push_back(random() % 12 == 0 ? kForbidden : number());
      variable.load.push_back(number());
    }
    if (random() % 3 == 0) variable.load.clear();
    problem.variables.push_back(std::move(variable));
  }
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count; ++b)
      if (random() % 2 == 0)
        problem.add(a, b, [&](std::size_t, std::size_t) {
          return random() % 20 == 0 ? kForbidden : number();
        });
  if (random() % 2 == 0) problem.limit = 20 * static_cast<double>(count) + number();
  return problem;
}

struct Best {
  double cost = kInfinity;
  std::vector<std::size_t> choice{};
};

Best of_all_choices(const Problem& problem) {
  Best best;
  std::vector<std::size_t> choice(problem.variables.size());
  while (true) {
    const double cost = problem.cost_of(choice);
    if (problem.load_of(choice) <= problem.limit && cost < best.cost) best = {cost, choice};
    std::size_t v = 0;
    while (v < choice.size() && ++choice[v] == problem.variables[v].cost.size()) choice[v++] = 0;
    if (v == choice.size()) return best;
  }
}

TEST(Solve, IsAsGoodAsAllChoices) {
  std::mt19937 random(7);
  int limited = 0;
  for (int n = 0; n < 400; ++n) {
    const Problem problem = random_problem(random);
    const Best best = of_all_choices(problem);
    const auto answer = solve(problem);
    ASSERT_EQ(answer.has_value(), std::isfinite(best.cost)) << n;
    if (!answer) continue;
    ASSERT_NEAR(answer->cost, best.cost, 1e-6) << n << " by " << answer->by;
    ASSERT_LE(answer->bound, answer->cost + 1e-6) << n;
    ASSERT_GE(answer->bound, best.cost - 1e-4) << n << " by " << answer->by;
    if (answer->by != "dynamic programming") ++limited;
  }
  EXPECT_GT(limited, 30);
}

// The two ways that share no code but the reduction of variables agree.
TEST(Solve, IntegerProgrammingAgreesWithDynamicProgramming) {
  std::mt19937 random(11);
  for (int n = 0; n < 100; ++n) {
    Problem problem = random_problem(random);
    problem.limit = kForbidden;
    const auto answer = solve(problem);
    const auto other = solve_by_cbc(problem, {});
    ASSERT_EQ(answer.has_value(), other.has_value()) << n;
    if (answer) {
      ASSERT_NEAR(answer->cost, other->cost, 1e-6) << n;
    }
  }
}

// A ring of 12 with chords needs tables of five variables: too large for this limit.
TEST(Solve, FallsBackWhereTablesAreTooLarge) {
  std::mt19937 random(3);
  Problem problem;
  constexpr std::size_t kCount = 12;
  for (std::size_t v = 0; v < kCount; ++v) problem.variables.push_back({"v", {0, 0, 0}, {}});
  const auto number = [&](std::size_t, std::size_t) { return static_cast<double>(random() % 100); };
  for (std::size_t v = 0; v < kCount; ++v) {
    problem.add(v, (v + 1) % kCount, number);
    problem.add(v, (v + 4) % kCount, number);
  }
  const auto exact = solve(problem);
  const auto other = solve(problem, {.table = 20});
  ASSERT_TRUE(exact && other);
  EXPECT_EQ(exact->by, "dynamic programming");
  EXPECT_EQ(other->by, "integer programming");
  EXPECT_NEAR(exact->cost, other->cost, 1e-6);
  EXPECT_FALSE(solve(problem, {.table = 20, .seconds = 0}));
}

TEST(Elimination, CompletesWhatIsLeftOut) {
  const Problem problem = two_operators();
  Elimination elimination(problem);
  EXPECT_DOUBLE_EQ(elimination.size_of(0).entries, 4);
  elimination.eliminate(0);
  EXPECT_FALSE(elimination.is_left(0));
  std::vector<std::size_t> choice{0, 0};
  elimination.complete(choice);
  EXPECT_EQ(choice[0], 1U);  // 2 + 5 < 8
  choice[1] = 1;
  elimination.complete(choice);
  EXPECT_EQ(choice[0], 1U);
}

}  // namespace
}  // namespace foreshard::search
