/// \file
/// A step in which ranks of one stage do different things, joined from one Program for each kind of
/// rank.
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
  /// At least one Program. All have the same mesh, streams and stages (roles), and the same number
  /// of operations between ranks for each tag.
  std::vector<program::Program> programs{};
  std::vector<std::string> names{};  ///< Per program: a suffix that tells its roles apart.
  std::vector<std::size_t> program_of_rank{};  ///< rank -> the program that it follows.
};

/// One Program in which each rank makes the calls of its own program. Everything else is taken from
/// the first program; the caller has to set `totals`.
program::Program joined(ProgramPerRank step);

}  // namespace foreshard::lower
