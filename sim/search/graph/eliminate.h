/// \file
/// Elimination of variables from a problem of choices: dynamic programming over its graph. To
/// eliminate a variable, its factors become one over its neighbours, each entry of which is the
/// best that the variable can do there. Exact; a chain or tree never needs more than a pair at a
/// time.
///
/// Source: Bertele and Brioschi, "Nonserial Dynamic Programming", 1972; Dechter, "Bucket
/// elimination", Artificial Intelligence 113, 1999. Loads are left out: callers price them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/search/graph/problem.h"

namespace foreshard::search {

/// A cost over several variables.
struct CostFactor {
  std::vector<std::size_t> scope{};  ///< Ascending.
  std::vector<double> cost{};        ///< The last variable's option varies fastest.
};

class Elimination {
 public:
  /// \param price  of a unit of load, added to the costs.
  explicit Elimination(const Problem& problem, double price = 0);

  /// Entries of the table over the variable and its neighbours, and of these how many.
  struct Size {
    double entries = 1;
    std::size_t neighbours = 0;
  };
  Size size_of(std::size_t variable) const;
  void eliminate(std::size_t variable);

  /// Eliminates all variables that are left, the one with the smallest table first (of equals the
  /// first of the problem).
  /// \return whether that was possible with tables of at most `most` entries.
  bool run(std::size_t most);

  /// Those that are left.
  std::vector<const CostFactor*> factors() const;
  bool is_left(std::size_t variable) const { return !done_[variable]; }
  /// The sum of what has no variable left.
  double constant() const { return constant_; }
  /// The options of eliminated variables, given those of the others in `choice`; of equal ones the
  /// first.
  void complete(std::vector<std::size_t>& choice) const;

 private:
  struct Record {
    std::size_t variable;
    std::vector<std::size_t> scope;
    std::vector<std::size_t> best;
  };
  std::vector<std::size_t> neighbours_of(std::size_t variable) const;
  void add(CostFactor factor);

  std::vector<std::size_t> options_;
  std::vector<CostFactor> factors_;                   // those that became others are empty
  std::vector<std::vector<std::size_t>> factors_of_;  // by variable: indices, some of empty ones
  std::vector<bool> done_;
  std::vector<Record> records_;
  double constant_ = 0;
};

}  // namespace foreshard::search
