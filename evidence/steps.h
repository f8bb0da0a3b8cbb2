/// \file
/// A user's own measured steps: each row names a study and the seconds of its step.
///
///     study,seconds
///     studies/llama-8b.yaml,1.31
///
/// Paths are relative to the table's folder. A study may stand in several rows; a column `id` names
/// rows in reports.
#pragma once

#include <string>
#include <vector>

#include "sim/study/measured_steps.h"
#include "validate/tables/table.h"

namespace foreshard::accuracy {

/// Columns that such a table has.
const std::vector<std::string>& step_columns();

/// One job for each row. A study that cannot be run, or a cell that is no time, costs only its row.
Jobs step_jobs(const Table& table, const Context& context);

/// The file that a study's `measured_steps` reads.
std::string to_yaml(const study::MeasuredSteps& steps);

}  // namespace foreshard::accuracy
