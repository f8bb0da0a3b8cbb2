/// \file
/// A problem of choices: every variable takes one of its options. The sum of the costs of single
/// options and of pairs of options is minimised, below a limit on the sum of the options' loads:
///
///     minimise    sum_v cost_v(x_v) + sum_(a,b) cost_ab(x_a, x_b)
///     subject to  sum_v load_v(x_v) <= limit
///
/// For a graph, operators are the variables, ways to split them the options, conversions between
/// them the pairs, and memory the load (tables.h). Costs and loads may have any unit, the same
/// throughout.
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
  /// One per option; kForbidden: not allowed. Invariant: not empty, >= 0.
  std::vector<double> cost{};
  std::vector<double> load{};  ///< One per option, >= 0; empty: no load.
};

/// The costs of a pair of variables.
/// Invariants: a < b; no two entries for one pair.
struct Pair {
  std::size_t a = 0;
  std::size_t b = 0;
  std::vector<double> cost{};  ///< [option of a * options of b + option of b], >= 0.
};

struct Problem {
  std::vector<Variable> variables{};
  std::vector<Pair> pairs{};
  double limit = kForbidden;

  /// Adds to the costs of a pair, or makes the pair. `cost(i, j)`: cost of option i of a with
  /// option j of b.
  template <class Cost>
  void add(std::size_t a, std::size_t b, Cost cost);
  double cost_of(const std::vector<std::size_t>& choice) const;
  double load_of(const std::vector<std::size_t>& choice) const;
};

struct SolveOptions {
  /// The most entries of a table of the dynamic programming.
  std::size_t table = std::size_t{1} << 22;
  /// The most nodes of the integer program's search tree, and the most seconds for it (0: it is not
  /// tried). Where the time limit comes first, the answer depends on the machine, and says so.
  std::int64_t nodes = 2000;
  double seconds = 20;
};

struct Answer {
  std::vector<std::size_t> choice{};
  double cost = 0;
  double bound = 0;  ///< No choice within the limit costs less. Invariant: <= cost.
  bool timed_out = false;
  std::string by{};  ///< "dynamic programming", "Lagrange multiplier", "integer programming".

  double gap() const { return cost > 0 ? 1 - bound / cost : 0; }
};

/// Finds the least cost by dynamic programming over a series of eliminations (eliminate.h), which
/// is exact for every graph whose tables stay within `table`, such as chains and trees. Where that
/// choice exceeds the limit, a Lagrange multiplier prices the load. A gap that remains, and
/// problems with larger tables, go to the integer program (solve_by_cbc).
/// \return nothing where no choice is both allowed and within the limit, or none was found in time.
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

// A problem of choices as an integer program, solved by CBC (COIN-OR branch and cut), which only
// integer.cc includes. For every variable exactly one option is 1:
//
//     sum_i x_vi = 1,   sum_j y_ij = x_ai,   sum_i y_ij = x_bj,   sum load_vi x_vi <= limit
//
// where y_ij >= 0 is for the pair of options i and j: the linearised product x_ai x_bj (the local
// polytope, tight on trees). Variables without load that have at most two neighbours are
// eliminated first, which is exact.

/// \param known  a choice within the limit to begin with; may be empty.
/// \return nothing where no choice is known (`known` is empty and CBC finds none), or where the
///     program would have more than a million columns.
std::optional<Answer> solve_by_cbc(const Problem& problem, const SolveOptions& options,
                                   const std::vector<std::size_t>& known = {});

}  // namespace foreshard::search
