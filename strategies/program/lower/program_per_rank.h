/// \file
/// A step in which ranks of one stage do different things: the Programs of each, joined.
///
///     programs 0, 1 with roles "stage 0", "stage 1"; ranks 0 to 3 of 4 follow 0, 0, 1, 1
///     -> roles "stage 0, 6 micro-batches" (rank 0), "stage 0, 2 micro-batches" (rank 2), ...
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "strategies/program/ir/program.h"

namespace foreshard::lower {

struct ProgramPerRank {
  /// Of the same mesh, streams and stages (roles), and of operations between ranks with the same
  /// tags as often. At least one.
  std::vector<program::Program> programs{};
  std::vector<std::string> names{};            ///< By program: what tells its roles apart.
  std::vector<std::size_t> program_of_rank{};  ///< Which of them each rank follows.
};

/// One Program in which each rank makes the calls of its own; what all have in common is the first
/// one's, and `totals` are to be set.
program::Program joined(ProgramPerRank step);

}  // namespace foreshard::lower
