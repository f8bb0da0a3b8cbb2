// Solves a problem of choices (problem.h) within its limit of loads: by dynamic programming, by a
// price of the load, or else by the integer program (integer.cc). search.cc and pipeline.cc of this
// folder call solve; it has no answer where even the lightest choice exceeds the limit.
#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/search/graph/eliminate.h"
#include "sim/search/graph/problem.h"

namespace foreshard::search {
namespace {

// A cost that is relatively nearer than this to its bound counts as the best.
constexpr double kExact = 1e-9;
constexpr int kCorners = 40;  // the most corners of the convex hull that are visited

// The choice of least cost with loads at this price; nothing where a table would be too large.
std::optional<std::vector<std::size_t>> priced(const Problem& problem, double price,
                                               std::size_t table) {
  Elimination elimination(problem, price);
  if (!elimination.run(table)) return std::nullopt;
  std::vector<std::size_t> choice(problem.variables.size());
  elimination.complete(choice);
  return choice;
}

// The allowed choice of least load; costs only break ties.
std::optional<std::vector<std::size_t>> lightest(const Problem& problem, std::size_t table) {
  Problem loads = problem;
  double heaviest = 0;
  for (Variable& variable : loads.variables)
    for (const double load : variable.load) heaviest = std::max(heaviest, load);
  if (heaviest == 0) return std::nullopt;
  constexpr double kLittle = 1e-9;
  double dearest = 0;
  const auto note = [&](double cost) {
    if (std::isfinite(cost)) dearest = std::max(dearest, cost);
  };
  for (const Variable& variable : problem.variables) std::ranges::for_each(variable.cost, note);
  for (const Pair& pair : problem.pairs) std::ranges::for_each(pair.cost, note);
  const double scale = dearest > 0 ? kLittle * heaviest / dearest : 0;
  const auto scaled = [&](double& cost) {
    if (std::isfinite(cost)) cost *= scale;
  };
  for (Variable& variable : loads.variables) std::ranges::for_each(variable.cost, scaled);
  for (Pair& pair : loads.pairs) std::ranges::for_each(pair.cost, scaled);
  return priced(loads, 1, table);
}

// The best choice within the limit that some price of the load gives, and the bound from the best
// price.
// \pre `free`, the choice of least cost without a limit, exceeds the limit.
std::optional<Answer> by_multiplier(const Problem& problem, const std::vector<std::size_t>& free,
                                    std::size_t table) {
  const auto light = lightest(problem, table);
  if (!light || problem.load_of(*light) > problem.limit || !std::isfinite(problem.cost_of(*light)))
    return std::nullopt;
  Answer answer{.choice = *light,
                .cost = problem.cost_of(*light),
                .bound = problem.cost_of(free),
                .by = "Lagrange multiplier"};
  // Keeps two corners of the convex hull of costs over loads, on either side of the limit. The line
  // between them gives the price with which the next corner is sought, until there is none.
  double light_load = problem.load_of(*light);
  double heavy_cost = answer.bound;
  double heavy_load = problem.load_of(free);
  for (int i = 0; i < kCorners; ++i) {
    const double price = (answer.cost - heavy_cost) / (heavy_load - light_load);
    if (!(price > 0)) break;
    const auto choice = priced(problem, price, table);
    if (!choice) break;
    const double cost = problem.cost_of(*choice);
    const double load = problem.load_of(*choice);
    answer.bound = std::max(answer.bound, cost + price * (load - problem.limit));
    const double on_line = answer.cost + price * light_load;
    if (cost + price * load >= on_line * (1 - kExact)) break;
    if (load <= problem.limit) {
      answer.choice = *choice;
      answer.cost = cost;
      light_load = load;
    } else {
      heavy_cost = cost;
      heavy_load = load;
    }
  }
  answer.bound = std::min(answer.bound, answer.cost);
  return answer;
}

}  // namespace

double Problem::cost_of(const std::vector<std::size_t>& choice) const {
  double sum = 0;
  for (std::size_t v = 0; v < variables.size(); ++v) sum += variables[v].cost[choice[v]];
  for (const Pair& pair : pairs)
    sum += pair.cost[choice[pair.a] * variables[pair.b].cost.size() + choice[pair.b]];
  return sum;
}

double Problem::load_of(const std::vector<std::size_t>& choice) const {
  double sum = 0;
  for (std::size_t v = 0; v < variables.size(); ++v)
    if (!variables[v].load.empty()) sum += variables[v].load[choice[v]];
  return sum;
}

std::optional<Answer> solve(const Problem& problem, const SolveOptions& options) {
  const auto free = priced(problem, 0, options.table);
  if (free) {
    const double cost = problem.cost_of(*free);
    if (!std::isfinite(cost)) return std::nullopt;
    if (problem.load_of(*free) <= problem.limit)
      return Answer{.choice = *free, .cost = cost, .bound = cost, .by = "dynamic programming"};
  }
  std::optional<Answer> answer;
  if (free) {
    answer = by_multiplier(problem, *free, options.table);
    if (!answer) return std::nullopt;  // even the lightest choice exceeds the limit
    if (answer->gap() <= kExact) return answer;
  }
  if (options.seconds <= 0) return answer;
  auto better =
      solve_by_cbc(problem, options, answer ? answer->choice : std::vector<std::size_t>{});
  if (!better) return answer;
  if (answer) better->bound = std::min(std::max(better->bound, answer->bound), better->cost);
  return better;
}

}  // namespace foreshard::search
