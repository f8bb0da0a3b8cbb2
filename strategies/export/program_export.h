/// \file
/// The Program as a file: what `foreshard export --program` writes and `foreshard-replay` executes.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"

#include "strategies/program/ir/program.h"

namespace foreshard::exporting {

/// Writes `program` (docs/program-format.md); a reader sees the old file or the whole new one.
/// \return verify's error if it breaks an invariant (nothing is written then), kIo with the path if
///     the file cannot be written.
std::optional<Error> write_program(const program::Program& program,
                                   const std::filesystem::path& path);

/// Reads and verifies a Program. Messages start with the path.
/// \return kIo if it cannot be read, kInvalidInput if it is not a valid Program, kUnsupported for
///     another schema version.
Result<program::Program> read_program(const std::filesystem::path& path);

}  // namespace foreshard::exporting
