/// \file
/// The timeline of a step in the Trace Event Format, which Chrome and ui.perfetto.dev open: one
/// process per class of devices, one thread per stream, one complete event per task. Source: "Trace
/// Event Format", Google, 2016.
#pragma once

#include <filesystem>

#include "base/result.h"

#include "sim/simulate/prediction.h"
#include "strategies/program/ir/program.h"

namespace foreshard::report {

/// Writes `prediction.timeline` task by task, whatever its size, as a NewFile (base/file.h).
/// \return kIo; then there is no new file.
Status write_trace(const std::filesystem::path& path, const sim::Prediction& prediction,
                   const program::Program& program);

}  // namespace foreshard::report
