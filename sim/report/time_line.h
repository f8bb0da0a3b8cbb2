/// \file
/// The time line of a step in a compact form, for bundles (`simulate --bundle`) and the pages that
/// show them: a million tasks take some hundred kilobytes.
///
/// Each track (a stream of a class of devices) has up to three levels: its passes, the layers in
/// them, its tasks. What is drawn of a level at a time is then never more than a screen can show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/record/forward.h"
#include "base/units.h"

#include "sim/report/spans.h"
#include "sim/simulate/prediction.h"
#include "strategies/program/ir/program.h"

namespace foreshard::report {

/// One level of a track: spans of time, one after another.
///
/// `data` is base64 of gzip of four columns, each of `count` whole numbers as LEB128 (7 bits a
/// byte, the lowest first; the high bit says that more follow):
///  1. time from the end of the span before (from 0 for the first), in nanoseconds;
///  2. length, in nanoseconds;
///  3. index into TimeLine::names;
///  4. micro-batch of a pass, layer of a layer or task; negative ones as 0.
/// Begin and end of a span are exact within a millionth of the step.
struct TimeLineLevel {
  std::string level;  ///< "passes", "layers" or "tasks".
  std::int64_t count = 0;
  std::string data;
};

struct TimeLineTrack {
  /// Index into `classes` of the result; empty for the critical path, which has a track of its own.
  std::optional<std::int32_t> device_class;
  std::string stream{};  ///< "compute", "host", "critical path"
  std::vector<TimeLineLevel> levels{};
};

struct TimeLine {
  std::vector<SpanName> names;
  std::vector<TimeLineTrack> tracks;
};

/// The time line of a prediction, the critical path first. Tasks without length are left out.
/// \pre The timeline was requested (sim::SimulateOptions::timeline).
TimeLine time_line_of(const sim::Prediction& prediction, const program::Program& program);

const record::Record<TimeLineLevel>& record_of(const TimeLineLevel*);
const record::Record<TimeLineTrack>& record_of(const TimeLineTrack*);
const record::Record<SpanName>& record_of(const SpanName*);
const record::Record<TimeLine>& record_of(const TimeLine*);

}  // namespace foreshard::report
