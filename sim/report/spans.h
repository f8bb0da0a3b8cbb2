/// \file
/// A step as spans of time, track by track: what bundles (time_line.h) and traces (trace.h) show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

#include "sim/simulate/prediction.h"
#include "strategies/program/ir/program.h"

namespace foreshard::report {

/// What a span is.
struct SpanName {
  std::string name;   ///< "forward", "layer.forward", "layer.forward / mlp up".
  std::string style;  ///< Part of the step or kind of pass, by which it is coloured: "tp_comm".
};

struct Span {
  Seconds start{};
  Seconds finish{};
  std::int32_t name = 0;                     ///< Index into Spans::names.
  std::int32_t number = 0;                   ///< Micro-batch of a pass, layer of a layer or task.
  const sim::TimelineEntry* task = nullptr;  ///< An entry of Prediction::timeline; null: no task.
};

/// Spans of time, one after another. Each lies within one of the level before it, or outside of all
/// of them.
struct SpanLevel {
  std::string level;  ///< "passes", "layers" or "tasks".
  std::vector<Span> spans;
};

/// A stream of a class of devices.
struct SpanTrack {
  /// Index into Prediction::classes; empty for the critical path, which has a track of its own.
  std::optional<std::int32_t> device_class;
  std::string stream{};  ///< "compute", "host", "critical path"
  std::vector<SpanLevel> levels{};
};

struct Spans {
  std::vector<SpanName> names;
  std::vector<SpanTrack> tracks;
};

/// The spans of a prediction, the critical path first. Tasks without length are left out.
/// \pre The timeline was requested (sim::SimulateOptions::timeline).
Spans spans_of(const sim::Prediction& prediction, const program::Program& program);

/// A disturbance, as far as it lies within the step.
struct HitSpan {
  Seconds start{};
  Seconds finish{};
  const disturbance::Hit* hit = nullptr;  ///< An entry of Prediction::disturbances.
};

/// Disturbances of one kind, one after another.
struct HitTrack {
  std::string kind;
  std::vector<HitSpan> hits;
};

/// All disturbances of the step: of each kind as few tracks as hold them.
std::vector<HitTrack> hit_tracks_of(const sim::Prediction& prediction);

/// Whole nanoseconds. Both ends of a span are rounded: so a span never begins before the previous
/// one on its track ends.
std::int64_t nanoseconds(Seconds time);

}  // namespace foreshard::report
