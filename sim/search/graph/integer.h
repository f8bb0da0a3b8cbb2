/// \file
/// A problem of choices as an integer program, solved by CBC (COIN-OR branch and cut), which only
/// integer.cc includes. For every variable exactly one option is 1:
///
///     sum_i x_vi = 1,   sum_j y_ij = x_ai,   sum_i y_ij = x_bj,   sum load_vi x_vi <= limit
///
/// where y_ij >= 0 is for the pair of options i and j: the linearised product x_ai x_bj (the local
/// polytope, tight on trees). Variables without load that have at most two neighbours are
/// eliminated first, which is exact.
#pragma once

#include <optional>

#include "sim/search/graph/problem.h"

namespace foreshard::search {

/// \param known  a choice within the limit to begin with; may be empty.
/// \return nothing where no choice is known (`known` is empty and CBC finds none), or where the
///     program would have more than a million columns.
std::optional<Answer> solve_by_cbc(const Problem& problem, const SolveOptions& options,
                                   const std::vector<std::size_t>& known = {});

}  // namespace foreshard::search
