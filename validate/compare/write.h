/// \file
/// A comparison for people, for programs, and as a picture.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

#include "validate/compare/compare.h"

namespace foreshard::compare {

inline constexpr std::string_view kComparisonSchema = "foreshard.comparison/1";

/// \param residuals  how many of them; kinds are listed while they matter (0.1 % of the step).
std::string to_text(const Comparison& comparison, std::size_t residuals = 10);

/// A signed error, "+3.1 %"; "-" if it is not known.
std::string percent(const std::optional<double>& part);

/// Everything, schema "foreshard.comparison/1" (docs/validation.md).
std::string to_json(const Comparison& comparison);

/// Both time lines in the Trace Event Format (as sim/report/trace.h): two processes per rank, one
/// above the other, what was measured first; a thread per stream. Waiting for other members of a
/// communication is an event of its own.
/// \pre as for `compare`, which succeeded.
/// \return kIo.
Status write_trace(const std::filesystem::path& path, const program::Program& program,
                   const sim::Prediction& prediction, const measure::Measurement& measurement);

}  // namespace foreshard::compare
