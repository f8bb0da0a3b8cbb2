/// \file
/// A measurement as JSON, schema "foreshard.measurement/1" (docs/replay.md). Equal measurements
/// give equal bytes; reading what was written gives the same measurement exactly.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/record/forward.h"
#include "base/result.h"

#include "validate/measurement/measurement.h"

namespace foreshard::measure {

inline constexpr std::string_view kMeasurementSchema = "foreshard.measurement/1";
/// Most characters that measurement_from_json accepts.
inline constexpr std::size_t kLargestMeasurementText = std::size_t{512} << 20;

/// Tasks are written as columns (one array per field), times in seconds.
std::string to_json(const Measurement& measurement);
const record::Record<Measurement>& record_of(const Measurement*);

/// Reads strictly: a missing, unknown or repeated key, a wrong type, columns of different lengths
/// or a number out of range are errors that name the place.
/// \return kInvalidInput; kUnsupported for another schema version.
Result<Measurement> measurement_from_json(std::string_view text);

}  // namespace foreshard::measure
