#include "sim/search/graph/pipeline.h"

#include <algorithm>
#include <utility>

namespace foreshard::search {
namespace {

constexpr int kMoves = 8;  // the most iterations that move the weights

double load_of(const Tables& tables, std::size_t stage, const std::vector<std::size_t>& choice) {
  double sum = 0;
  for (std::size_t v = 0; v < choice.size(); ++v) {
    const std::vector<double>& load = tables.problem.variables[v].load;
    if (tables.stage_of[v] == stage && !load.empty()) sum += load[choice[v]];
  }
  return sum;
}

// stage -> the step if that stage sets the pace.
std::vector<double> paces_of(const Tables& tables, const std::vector<std::size_t>& choice) {
  const std::vector<StageCosts> costs = costs_of(tables, choice);
  double through = 0;  // time of one round through all stages
  for (std::size_t s = 0; s < costs.size(); ++s) through += tables.passes[s] * costs[s].pass;
  std::vector<double> paces;
  for (std::size_t s = 0; s < costs.size(); ++s)
    paces.push_back(through + (tables.rounds - 1) * tables.passes[s] * costs[s].pass +
                    costs[s].once);
  return paces;
}

// The least cost of `problem` with no stage too full. The bound is the bound of the first solution,
// or of the second where it is higher.
std::optional<Answer> solve_within(Problem problem, const Tables& tables,
                                   const std::vector<double>& rooms, double most,
                                   const SolveOptions& options) {
  for (Variable& variable : problem.variables) variable.load.clear();
  auto answer = solve(problem, options);
  double bound = answer ? answer->bound : 0;
  for (std::size_t round = 0; answer && round < rooms.size(); ++round) {
    std::size_t fullest = 0;
    double fill = 0;
    for (std::size_t s = 0; s < rooms.size(); ++s)
      if (const double own = load_of(tables, s, answer->choice) / rooms[s]; own > fill)
        std::tie(fullest, fill) = std::pair(s, own);
    if (fill <= most) break;
    for (std::size_t v = 0; v < problem.variables.size(); ++v)
      if (tables.stage_of[v] == fullest)
        problem.variables[v].load = tables.problem.variables[v].load;
    problem.limit = most * rooms[fullest];
    answer = solve(problem, options);
    if (!answer) break;
    bound = std::max(bound, round == 0 ? answer->bound : 0.0);
    problem.limit = kForbidden;
    for (std::size_t v = 0; v < problem.variables.size(); ++v) {
      Variable& variable = problem.variables[v];
      variable.load.clear();
      if (tables.stage_of[v] != fullest || v >= tables.splits.size()) continue;
      for (std::size_t n = 0; n < variable.cost.size(); ++n)
        if (n != answer->choice[v]) variable.cost[n] = kForbidden;
    }
  }
  if (!answer || fill_of(tables, rooms, answer->choice) > most) return std::nullopt;
  answer->bound = std::min(bound, answer->cost);
  return answer;
}

}  // namespace

std::vector<StageCosts> costs_of(const Tables& tables, const std::vector<std::size_t>& choice) {
  std::vector<StageCosts> costs(tables.stages());
  for (std::size_t v = 0; v < choice.size(); ++v) {
    StageCosts& own = costs[tables.stage_of[v]];
    const double cost = tables.pass.variables[v].cost[choice[v]];
    own.pass += cost;
    own.forward += tables.forward[v][choice[v]];
    own.once += tables.once[v][choice[v]];
    if (v >= tables.splits.size()) own.messages += cost;  // activations cost their transfers alone
  }
  for (const Pair& pair : tables.pass.pairs) {
    const std::size_t columns = tables.pass.variables[pair.b].cost.size();
    const double cost = pair.cost[choice[pair.a] * columns + choice[pair.b]];
    StageCosts& own = costs[tables.stage_of[pair.a]];
    own.pass += cost;
    own.forward += cost / 2;
  }
  return costs;
}

double step_of(const Tables& tables, const std::vector<std::size_t>& choice) {
  if (tables.stages() == 1) return tables.problem.cost_of(choice);
  const auto paces = paces_of(tables, choice);
  return *std::ranges::max_element(paces);
}

double fill_of(const Tables& tables, const std::vector<double>& rooms,
               const std::vector<std::size_t>& choice) {
  double most = 0;
  for (std::size_t s = 0; s < rooms.size(); ++s)
    most = std::max(most, load_of(tables, s, choice) / rooms[s]);
  return most;
}

std::optional<Answer> solve(const Tables& tables, const std::vector<double>& rooms, double most,
                            const SolveOptions& options) {
  if (tables.stages() == 1) {
    Problem problem = tables.problem;
    problem.limit = most * rooms.front();
    return solve(problem, options);
  }
  const auto stages = static_cast<double>(tables.stages());
  std::vector<double> seen(tables.stages());  // how often each stage set the pace
  std::vector<double> parts(tables.stages(), 1 / stages);
  std::optional<Answer> best;
  double least = kForbidden;
  double bound = 0;
  for (int move = 0; move < kMoves; ++move) {
    auto answer = solve_within(tables.weighted(parts), tables, rooms, most, options);
    if (!answer) break;
    bound = std::max(bound, answer->bound);
    const auto paces = paces_of(tables, answer->choice);
    const auto slowest = std::ranges::max_element(paces) - paces.begin();
    answer->cost = paces[static_cast<std::size_t>(slowest)];
    if (answer->cost < least) {
      least = answer->cost;
      best = std::move(answer);
    }
    constexpr double kExact = 1e-9;
    if (bound >= least * (1 - kExact)) break;
    seen[static_cast<std::size_t>(slowest)] += 1;
    for (std::size_t s = 0; s < parts.size(); ++s) parts[s] = seen[s] / (move + 1);
  }
  if (best) best->bound = std::min(bound, least);
  return best;
}

}  // namespace foreshard::search
