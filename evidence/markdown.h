/// \file
/// Writes a Report as a page of documentation, for `foreshard accuracy --report FILE.md`
/// (cli/accuracy.cc).
#pragma once

#include <string>

#include "evidence/accuracy.h"

namespace foreshard::accuracy {

/// The page in Markdown: rows, coverage, errors, bias, ranking and intervals of each table,
/// framework and kernel; the part of a step with which the errors of a table grow; errors of peak
/// memory; the ten rows that are farthest off, with their likely causes (causes.h); and why rows
/// have no prediction. If some rows are of tier core, these sections cover tier core only, except
/// peak memory and missing predictions, and the other tiers have a section of their own.
std::string to_markdown(const Report& report);

}  // namespace foreshard::accuracy
