/// \file
/// A report as JSON, schema "foreshard.prediction/1": the output that programs may rely on. The
/// same report gives the same bytes; only `wall`, if requested, differs from run to run.
#pragma once

#include <string>

#include "base/record/forward.h"

#include "sim/report/report.h"

namespace foreshard::report {

inline constexpr std::string_view kPredictionSchema = "foreshard.prediction/1";

/// The keys of a prediction, once: JSON and JSON Schema.
const record::Record<Report>& record_of(const Report*);

/// Times are in seconds, sizes in whole bytes; indented, with a newline at the end. Unknown values
/// are null. Everywhere, `capacity_bytes` is a device's whole memory and `reserve_bytes` the part
/// that it keeps for other things than tensors (docs/memory.md): a step fits if its `peak_bytes` is
/// at most the difference. `memory` is about the device with the least room; `memory.reserve_bytes`
/// holds for every class.
std::string to_json(const Report& report);

/// The same on one line, compressed by gzip: the file of `simulate --bundle`.
std::string to_bundle(const Report& report);

}  // namespace foreshard::report
