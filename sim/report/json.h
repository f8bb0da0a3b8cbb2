/// \file
/// A report as JSON, schema "foreshard.prediction/1": what programs may rely on. The same report
/// gives the same bytes; only `wall`, where it was asked for, differs from run to run.
#pragma once

#include <string>

#include "sim/report/report.h"

namespace foreshard::report {

inline constexpr std::string_view kPredictionSchema = "foreshard.prediction/1";

/// Times in seconds, sizes in whole bytes; indented, with a newline at the end. What is not known
/// is null. Everywhere, `capacity_bytes` is all that a device has and `reserve_bytes` what it keeps
/// for others than tensors (docs/memory.md): what fits is a `peak_bytes` of at most the difference.
/// `memory` is of the device with the least room, `memory.reserve_bytes` holds for every class.
std::string to_json(const Report& report);

}  // namespace foreshard::report
