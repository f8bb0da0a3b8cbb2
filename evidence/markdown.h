/// \file
/// A Report as a page of documentation.
#pragma once

#include <string>

#include "evidence/accuracy.h"

namespace foreshard::accuracy {

/// Markdown: each table and each framework with its rows, coverage, errors, bias, ranking and
/// intervals; with what part of a step the errors of a table grow; the ten rows that are farthest
/// off, with their likely causes (causes.h); and why rows have no prediction. Where rows have
/// tiers, errors are those of tier core, and the other tiers follow apart.
std::string to_markdown(const Report& report);

}  // namespace foreshard::accuracy
