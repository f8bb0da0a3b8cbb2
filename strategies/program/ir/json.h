/// \file
/// The Program as JSON (schema "foreshard.program/1"; docs/program-format.md is its reference).
/// The text is canonical: equal Programs give equal bytes, and reading it back gives the same
/// Program exactly.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

#include "strategies/program/ir/program.h"

namespace foreshard::program {

inline constexpr std::string_view kProgramSchema = "foreshard.program/1";

/// \pre verify(program) finds nothing (its numbers are finite, its names are UTF-8).
std::string to_json(const Program& program);

/// Reads what to_json writes; strictly: a missing, unknown or repeated key, a wrong type, an
/// unknown name or a number out of range is an error that names the place
/// ("roles[3].calls[17][2]"). It checks the form only; `verify` checks the meaning.
/// \return kInvalidInput for text that is not a Program, kUnsupported for another schema version.
Result<Program> program_from_json(std::string_view text);

}  // namespace foreshard::program
