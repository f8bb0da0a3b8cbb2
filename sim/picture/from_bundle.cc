// Pictures of a bundle: passes, memory over time, use of links.
#include "sim/picture/internal/from_bundle.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest/base64.h"
#include "base/gzip/gzip.h"
#include "base/limits.h"
#include "base/quantity.h"

#include "sim/picture/chart.h"
#include "sim/picture/from_result.h"
#include "sim/picture/internal/limits.h"
#include "sim/picture/svg.h"

namespace foreshard::picture {
namespace {

[[noreturn]] void refuse(std::string_view what) {
  throw std::out_of_range(std::string(what));
}

const Json& bundle_of(const Json& result) {
  if (!result.contains("bundle"))
    refuse("it has no time line: write it by foreshard simulate STUDY --bundle step.fsr");
  return result.at("bundle");
}

// One level of a track (sim/report/time_line.h), in seconds.
struct Span {
  double start = 0;
  double length = 0;
  std::uint64_t name = 0;
  std::uint64_t number = 0;
};

class Columns {
 public:
  explicit Columns(std::string bytes) : bytes_(std::move(bytes)) {}

  std::uint64_t next() {
    constexpr unsigned kBits = 7;
    constexpr unsigned kMost = 63;
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < kMost; shift += kBits) {
      if (at_ == bytes_.size()) refuse("its time line ends too early");
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      number |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if ((byte & 0x80U) == 0) return number;
    }
    refuse("its time line has a number that is too long");
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

// An index that must lie below `size`.
std::size_t index_of(const Json& json, std::size_t size) {
  const auto index = json.get<std::int64_t>();
  if (index < 0 || index >= static_cast<std::int64_t>(size))
    refuse(fmt::format("its time line names class {} of {}", index, size));
  return static_cast<std::size_t>(index);
}

std::vector<Span> spans_of(const Json& level) {
  constexpr double kNanosecond = 1e-9;
  const auto packed = from_base64(level.at("data").get<std::string>());
  if (!packed) refuse("its time line is no base64");
  auto bytes = gunzip(*packed, "its time line", limits::kResult);
  if (!bytes) refuse(bytes.error().message);
  const auto count = level.at("count").get<std::int64_t>();
  if (count < 0 || count > std::ssize(*bytes)) refuse("its time line ends too early");
  Columns columns(*std::move(bytes));
  std::vector<Span> spans(static_cast<std::size_t>(count));
  for (Span& span : spans) span.start = kNanosecond * static_cast<double>(columns.next());
  double end = 0;
  for (Span& span : spans) {
    span.length = kNanosecond * static_cast<double>(columns.next());
    span.start += end;
    end = span.start + span.length;
  }
  for (Span& span : spans) span.name = columns.next();
  for (Span& span : spans) span.number = columns.next();
  return spans;
}

// The boxes of a lane. Passes of a kind that follow each other are joined where both are shorter
// than `shortest` seconds.
std::vector<Lanes::Box> boxes_of(const Json& names, const std::vector<Span>& spans,
                                 double shortest) {
  std::vector<Lanes::Box> boxes;
  for (const Span& span : spans) {
    const std::string name = names.at(span.name).at("name").get<std::string>();
    if (!boxes.empty() && boxes.back().style == name) {
      Lanes::Box& last = boxes.back();
      if (std::max(span.length, span.start - (last.start + last.length)) < shortest) {
        last.length = span.start + span.length - last.start;
        last.label.clear();
        last.in_words = fmt::format("{} of several micro-batches: until {}", name,
                                    format((last.start + last.length) * 1_s));
        continue;
      }
    }
    boxes.push_back({.style = name,
                     .start = span.start,
                     .length = span.length,
                     .label = name == "optimizer" ? "" : std::to_string(span.number),
                     .in_words = fmt::format("{} of micro-batch {}: {} from {}", name, span.number,
                                             format(span.length * 1_s), format(span.start * 1_s))});
    if (name == "optimizer") boxes.back().in_words = name + ": " + format(span.length * 1_s);
  }
  return boxes;
}

}  // namespace

std::vector<std::string> class_names(const Json& result) {
  const Json& classes = result.at("classes");
  std::map<std::string, std::size_t> of_role;
  for (const Json& one : classes) ++of_role[one.at("role").get<std::string>()];
  std::vector<std::string> names;
  for (const Json& one : classes) {
    const auto role = one.at("role").get<std::string>();
    names.push_back(of_role[role] == 1
                        ? role
                        : fmt::format("rank {}", one.at("representative").get<std::int64_t>()));
  }
  return names;
}

void check_time_line(const Json& result) {
  const Json& line = bundle_of(result).at("time_line");
  const std::size_t classes = result.at("classes").size();
  const Json& names = line.at("names");
  if (!names.is_array()) refuse("its time line has no list of names");
  for (const Json& name : names)
    if (!name.at("name").is_string() || !name.at("style").is_string())
      refuse("its time line has a name that is no text");
  if (line.at("tracks").empty()) refuse("its time line has no tracks");
  for (const Json& track : line.at("tracks")) {
    if (!track.at("class").is_null()) index_of(track.at("class"), classes);
    if (!track.at("stream").is_string()) refuse("its time line has a stream without a name");
    if (track.at("levels").empty()) refuse("its time line has a track without levels");
    for (const Json& level : track.at("levels")) {
      if (!level.at("level").is_string()) refuse("its time line has a level without a name");
      for (const Span& span : spans_of(level))
        if (span.name >= names.size()) refuse("its time line names a task that it does not have");
    }
  }
}

std::string draw_passes(const Json& result) {
  constexpr std::size_t kMostLanes = 64;
  constexpr std::size_t kMostBoxes = 8000;
  const Json& line = bundle_of(result).at("time_line");
  Lanes chart{.title = "Passes of " + result.at("study").at("name").get<std::string>(),
              .x_axis = "time, s"};
  for (const Json& one : result.at("classes"))
    chart.end = std::max(chart.end, amount(one, "finish_s"));
  const std::vector<std::string> classes = class_names(result);
  std::vector<std::vector<Span>> passes;
  std::size_t lanes = 0;
  for (const Json& track : line.at("tracks"))
    for (const Json& level : track.at("levels")) {
      if (level.at("level") != "passes") continue;
      ++lanes;
      if (passes.size() == kMostLanes) continue;
      passes.push_back(spans_of(level));
      chart.lanes.push_back({.name = classes.at(index_of(track.at("class"), classes.size()))});
    }
  if (lanes > kMostLanes)
    chart.title += fmt::format(", the first {} of {} classes", kMostLanes, lanes);
  // As many passes are joined as must be for a picture of a usual size.
  std::size_t boxes = 0;
  double shortest = chart.end / kWidth / 2;  // half a pixel
  do {
    boxes = 0;
    for (std::size_t i = 0; i < passes.size(); ++i) {
      chart.lanes[i].boxes = boxes_of(line.at("names"), passes[i], shortest);
      boxes += chart.lanes[i].boxes.size();
    }
    shortest *= 2;
  } while (boxes > kMostBoxes && shortest < chart.end);
  return draw(chart);
}

std::string draw_memory_over_time(const Json& result) {
  constexpr std::array<const char*, 5> kKinds{"parameters", "optimizer", "gradients", "activations",
                                              "buffers"};
  const Json& memory = result.at("memory");
  const auto worst = memory.at("worst_device").get<std::int64_t>();
  for (const Json& curve : bundle_of(result).at("memory_over_time")) {
    const Json& of =
        result.at("classes").at(index_of(curve.at("class"), result.at("classes").size()));
    if (of.at("representative").get<std::int64_t>() != worst) continue;
    StackedAreas chart{.title = "Memory of " + of.at("role").get<std::string>(),
                       .x_axis = "time, s",
                       .unit = "GiB"};
    for (const Json& time : curve.at("time_s"))
      chart.times.push_back(checked_amount(time, "time_s"));
    if (!std::ranges::is_sorted(chart.times)) refuse("its memory over time goes back in time");
    for (const Json& one : result.at("classes"))
      chart.end = std::max(chart.end, amount(one, "finish_s"));
    for (const char* kind : kKinds) {
      StackedAreas::Area area{.name = kind, .style = kind};
      for (const Json& bytes : curve.at(std::string(kind) + "_bytes"))
        area.values.push_back(checked_amount(bytes, kind) / kGiB);
      if (area.values.size() != chart.times.size()) refuse("its memory over time is incomplete");
      chart.areas.push_back(std::move(area));
    }
    chart.limits = limits_of(memory);
    return draw(chart);
  }
  refuse("it has no memory over time of the device with the least room");
}

std::string draw_fabric(const Json& result) {
  const double step = step_of(result);
  Bars chart{.title = "Use of the busiest link of each kind, mean over the step",
             .axis = "part of the bandwidth"};
  for (const Json& group : bundle_of(result).at("link_groups")) {
    const double bandwidth = amount(group, "bandwidth_bytes_per_s");
    if (bandwidth == 0 || step == 0) continue;
    const double use = amount(group, "most_bytes") / bandwidth / step;
    chart.bars.push_back({group.at("what").get<std::string>(), use,
                          fmt::format("{:.1f} % of {}", 100 * use, format(bandwidth * 1_B / 1_s))});
  }
  if (chart.bars.empty()) refuse("nothing crosses a link of its cluster");
  return draw(chart);
}

}  // namespace foreshard::picture
