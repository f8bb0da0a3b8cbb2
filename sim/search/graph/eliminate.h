/// \file
/// Elimination of variables from a problem of choices: dynamic programming over its graph.
/// Eliminating a variable replaces its factors by one factor over its neighbours, each entry of
/// which has the least cost over the variable's options. This is exact; a chain or tree never needs
/// a factor of more than two variables.
///
/// Source: Bertele and Brioschi, "Nonserial Dynamic Programming", 1972; Dechter, "Bucket
/// elimination", Artificial Intelligence 113, 1999. Loads are ignored, except that callers can
/// price them.
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
  /// \param price  cost of a unit of load, added to the costs.
  explicit Elimination(const Problem& problem, double price = 0);

  /// Size of the table over a variable and its neighbours, and the number of neighbours.
  struct Size {
    double entries = 1;
    std::size_t neighbours = 0;
  };
  Size size_of(std::size_t variable) const;
  void eliminate(std::size_t variable);

  /// Eliminates all remaining variables, the one with the smallest table first; ties go to the
  /// first in the problem.
  /// \return whether that was possible with tables of at most `most` entries.
  bool run(std::size_t most);

  /// The remaining factors.
  std::vector<const CostFactor*> factors() const;
  bool is_left(std::size_t variable) const { return !done_[variable]; }
  /// The sum of costs that no longer depend on a variable.
  double constant() const { return constant_; }
  /// Fills in the options of eliminated variables, given the other variables' options in `choice`;
  /// ties go to the first option.
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
  std::vector<CostFactor> factors_;                   // replaced ones are empty
  std::vector<std::vector<std::size_t>> factors_of_;  // variable -> indices, also of empty factors
  std::vector<bool> done_;
  std::vector<Record> records_;
  double constant_ = 0;
};

}  // namespace foreshard::search
