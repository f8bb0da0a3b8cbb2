// Writes the time line of a step as columns (time_line.h), for predict.cc.
#include "sim/report/time_line.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/digest/base64.h"
#include "base/gzip/gzip.h"
#include "base/record/record.h"

namespace foreshard::report {
namespace {

void append_number(std::string& bytes, std::uint64_t number) {
  constexpr std::uint64_t kLow = 0x7f;
  while (number > kLow) {
    bytes += static_cast<char>((number & kLow) | (kLow + 1));
    number >>= 7;
  }
  bytes += static_cast<char>(number);
}

// Lengths are rounded alone, so that layers which take the same time have the same bytes and
// compress well. Where the rounded times have drifted from the exact ones by `tolerance`, the next
// length takes the difference back.
class Rounder {
 public:
  explicit Rounder(std::int64_t tolerance) : tolerance_(tolerance) {}

  // The rounded time from where the last call ended to `time`, in nanoseconds.
  std::uint64_t step_to(Seconds time) {
    const std::int64_t exact = std::llround(time / 1_ns);
    std::int64_t length = std::llround((time - last_) / 1_ns);
    if (std::abs(at_ + length - exact) > tolerance_) length = exact - at_;
    length = std::max<std::int64_t>(length, 0);
    last_ = time;
    at_ += length;
    return static_cast<std::uint64_t>(length);
  }

 private:
  std::int64_t tolerance_;
  std::int64_t at_ = 0;
  Seconds last_;
};

std::string packed(const std::vector<Span>& spans, std::int64_t tolerance) {
  std::string gaps;
  std::string lengths;
  std::string names;
  std::string numbers;
  Rounder rounder(tolerance);
  for (const Span& span : spans) {
    append_number(gaps, rounder.step_to(span.start));
    append_number(lengths, rounder.step_to(span.finish));
    append_number(names, static_cast<std::uint64_t>(span.name));
    append_number(numbers, static_cast<std::uint64_t>(std::max(span.number, 0)));
  }
  return base64(gzip(gaps + lengths + names + numbers));
}

}  // namespace

TimeLine time_line_of(const sim::Prediction& prediction, const program::Program& program) {
  constexpr double kTolerance = 1e-6;  // part of the step
  const auto tolerance = std::llround(kTolerance * (prediction.step / 1_ns));
  Spans spans = spans_of(prediction, program);
  TimeLine line{.names = std::move(spans.names), .tracks = {}};
  for (SpanTrack& track : spans.tracks) {
    TimeLineTrack& packed_track = line.tracks.emplace_back(
        TimeLineTrack{.device_class = track.device_class, .stream = std::move(track.stream)});
    for (SpanLevel& level : track.levels)
      packed_track.levels.push_back({.level = std::move(level.level),
                                     .count = std::ssize(level.spans),
                                     .data = packed(level.spans, tolerance)});
  }
  return line;
}

const record::Record<TimeLineLevel>& record_of(const TimeLineLevel*) {
  static const auto record =
      record::Record<TimeLineLevel>("time_line_level")
          .field("level", &TimeLineLevel::level, "", record::one_of({"passes", "layers", "tasks"}))
          .field("count", &TimeLineLevel::count, "Spans of time.")
          .field(
              "data", &TimeLineLevel::data,
              "base64 of gzip of four columns of LEB128 numbers: nanoseconds from the end of the "
              "span before, nanoseconds that it takes, index into names, micro-batch of a pass "
              "or layer.");
  return record;
}

const record::Record<TimeLineTrack>& record_of(const TimeLineTrack*) {
  static const auto record =
      record::Record<TimeLineTrack>("time_line_track", "A stream of a class of devices.")
          .field("class", &TimeLineTrack::device_class,
                 "Index into classes; null for the critical path.")
          .field("stream", &TimeLineTrack::stream)
          .field("levels", &TimeLineTrack::levels);
  return record;
}

const record::Record<SpanName>& record_of(const SpanName*) {
  static const auto record =
      record::Record<SpanName>("time_line_name")
          .field("name", &SpanName::name)
          .field("style", &SpanName::style, "Kind of pass, or part of the step as in breakdown_s.");
  return record;
}

const record::Record<TimeLine>& record_of(const TimeLine*) {
  static const auto record =
      record::Record<TimeLine>("time_line", "Every task of every class (simulate --bundle).")
          .field("names", &TimeLine::names)
          .field("tracks", &TimeLine::tracks);
  return record;
}

}  // namespace foreshard::report
