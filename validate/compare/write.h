/// \file
/// Writes a comparison as text for people, as JSON, and as a trace to look at.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/record/forward.h"
#include "base/result.h"

#include "validate/compare/compare.h"

namespace foreshard::compare {

/// Text for people. Kinds are listed down to 0.1 % of the step.
/// \param residuals  how many residuals are listed.
std::string to_text(const Comparison& comparison, std::size_t residuals = 10);

/// A signed error, "+3.1 %"; "-" if it is unknown.
std::string percent(const std::optional<double>& part);

/// The whole comparison as JSON, schema "foreshard.comparison/1" (docs/validation.md).
std::string to_json(const Comparison& comparison);
const record::Record<Comparison>& record_of(const Comparison*);

/// A fraction as a percentage, and the error of a pair as one.
double percentage(double part);
std::optional<double> error_percentage(const Pair& pair);

/// Writes both time lines in the Trace Event Format (as sim/report/trace.h). Each rank has two
/// processes, first the measured and then the predicted one, with a thread per stream. Waiting for
/// other members of a communication is an event of its own.
/// \pre `compare` succeeded on the same arguments.
/// \return kIo if the file cannot be written.
Status write_trace(const std::filesystem::path& path, const program::Program& program,
                   const sim::Prediction& prediction, const measure::Measurement& measurement);

}  // namespace foreshard::compare
