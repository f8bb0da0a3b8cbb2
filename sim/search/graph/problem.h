/// \file
/// A problem of choices: every variable takes one of its options; what is to be least is a sum of
/// costs of single options and of pairs of options, below a limit of what the options load:
///
///     minimise    sum_v cost_v(x_v) + sum_(a,b) cost_ab(x_a, x_b)
///     subject to  sum_v load_v(x_v) <= limit
///
/// Operators of a graph are variables, the ways to split them options, conversions between them
/// pairs, memory the load (tables.h). Costs and loads are of any unit, equal throughout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace foreshard::search {

inline constexpr double kForbidden = std::numeric_limits<double>::infinity();

struct Variable {
  std::string name{};
  std::vector<double> cost{};  ///< By option; kForbidden: never. Invariant: not empty, >= 0.
  std::vector<double> load{};  ///< By option, >= 0; empty: none.
};

/// Invariants: a < b; no two pairs of the same variables.
struct Pair {
  std::size_t a = 0;
  std::size_t b = 0;
  std::vector<double> cost{};  ///< [option of a * options of b + option of b], >= 0.
};

struct Problem {
  std::vector<Variable> variables{};
  std::vector<Pair> pairs{};
  double limit = kForbidden;

  /// Adds to the cost of a pair, or makes it. `cost(i, j)` is of options of a and b, in this order.
  template <class Cost>
  void add(std::size_t a, std::size_t b, Cost cost);
  double cost_of(const std::vector<std::size_t>& choice) const;
  double load_of(const std::vector<std::size_t>& choice) const;
};

struct SolveOptions {
  std::size_t table = std::size_t{1} << 22;  ///< Most entries of a table of dynamic programming.
  /// Most nodes of the integer program's tree, and the most seconds for it (0: none at all). Where
  /// the seconds come first, the answer depends on the machine, and says so.
  std::int64_t nodes = 2000;
  double seconds = 20;
};

struct Answer {
  std::vector<std::size_t> choice{};
  double cost = 0;
  double bound = 0;  ///< Nothing within the limit costs less. Invariant: <= cost.
  bool timed_out = false;
  std::string by{};  ///< "dynamic programming", "Lagrange multiplier", "integer programming".

  double gap() const { return cost > 0 ? 1 - bound / cost : 0; }
};

/// The least cost: by dynamic programming over a series of eliminations (eliminate.h), exact for
/// every graph whose tables stay within `table`, chains and trees among them. Where the limit is
/// exceeded so, a Lagrange multiplier prices the load; what gap that leaves, and tables that are
/// too large, go to the integer program (integer.h).
/// \return nothing where no choice is allowed and within the limit, or none was found in time.
std::optional<Answer> solve(const Problem& problem, const SolveOptions& options = {});

template <class Cost>
void Problem::add(std::size_t a, std::size_t b, Cost cost) {
  const bool turned = b < a;
  const std::size_t first = turned ? b : a;
  const std::size_t second = turned ? a : b;
  const std::size_t columns = variables[second].cost.size();
  Pair* known = nullptr;
  for (Pair& pair : pairs)
    if (pair.a == first && pair.b == second) known = &pair;
  if (known == nullptr) {
    pairs.push_back({first, second, std::vector<double>(variables[first].cost.size() * columns)});
    known = &pairs.back();
  }
  for (std::size_t i = 0; i < variables[first].cost.size(); ++i)
    for (std::size_t j = 0; j < columns; ++j)
      known->cost[i * columns + j] += turned ? cost(j, i) : cost(i, j);
}

}  // namespace foreshard::search
