/// \file
/// The timeline of a step as a file for viewers of traces. The ending of its name says which:
///  - .pftrace: Perfetto's own format (base/perfetto/perfetto.h), for ui.perfetto.dev: kernels
///  within
///    layers within passes, arrows from sends to their receives, bytes and algorithm of
///    communications, counters of memory and of the use of links;
///  - .json: the Trace Event Format, which more viewers open: one process per class of devices, one
///    thread per stream, one complete event per task.
/// With .gz behind it, gzip compresses the file.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "sim/simulate/prediction.h"
#include "strategies/program/ir/program.h"

namespace foreshard::report {

/// ".json", ".pftrace"
std::vector<std::string_view> trace_endings();

/// \return kInvalidInput, with the endings, if the name has none of them, before .gz or not.
Status check_ending(const std::filesystem::path& path, std::span<const std::string_view> endings);

/// Writes the timeline, whatever its size, as a NewFile (base/file.h).
/// \return kIo, or the error of check_ending; then there is no new file.
Status write_trace(const std::filesystem::path& path, const sim::Prediction& prediction,
                   const program::Program& program);

}  // namespace foreshard::report
