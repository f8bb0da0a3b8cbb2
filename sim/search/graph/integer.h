/// \file
/// A problem of choices as an integer program, solved by CBC (COIN-OR branch and cut), which this
/// file's source alone sees. Of every variable one option is 1:
///
///     sum_i x_vi = 1,   sum_j y_ij = x_ai,   sum_i y_ij = x_bj,   sum load_vi x_vi <= limit
///
/// where y_ij >= 0 stands for the pair of options i and j: the products x_ai x_bj, linearised (the
/// local polytope, tight on trees). Variables without load that have at most two neighbours are
/// eliminated before, which is exact.
#pragma once

#include <optional>

#include "sim/search/graph/problem.h"

namespace foreshard::search {

/// \param known  a choice within the limit to begin with; may be empty.
/// \return nothing where CBC finds no choice better than `known` and cannot say what is best, or
///     where the program would have more than a million columns.
std::optional<Answer> solve_by_cbc(const Problem& problem, const SolveOptions& options,
                                   const std::vector<std::size_t>& known = {});

}  // namespace foreshard::search
