// Pictures of a bundle: passes, memory over time, use of links.
#include "sim/picture/internal/from_bundle.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest/base64.h"
#include "base/gzip/gzip.h"
#include "base/limits.h"
#include "base/quantity.h"

#include "sim/picture/chart.h"
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

std::vector<Span> spans_of(const Json& level) {
  constexpr double kNanosecond = 1e-9;
  const auto packed = from_base64(level.at("data").get<std::string>());
  if (!packed) refuse("its time line is no base64");
  auto bytes = gunzip(*packed, "its time line", limits::kResult);
  if (!bytes) refuse(bytes.error().message);
  const auto count = level.at("count").get<std::size_t>();
  if (count > bytes->size()) refuse("its time line ends too early");
  Columns columns(*std::move(bytes));
  std::vector<Span> spans(count);
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

// "stage 3", or with the rank where several classes have one role.
std::string name_of_class(const Json& classes, std::size_t index) {
  const std::string role = classes.at(index).at("role").get<std::string>();
  const auto same = std::ranges::count_if(
      classes, [&](const Json& one) { return one.at("role").get<std::string>() == role; });
  return same == 1
             ? role
             : fmt::format("rank {}", classes.at(index).at("representative").get<std::int64_t>());
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

std::string draw_passes(const Json& result) {
  constexpr std::size_t kMostLanes = 64;
  constexpr std::size_t kMostBoxes = 8000;
  const Json& line = bundle_of(result).at("time_line");
  Lanes chart{.title = "Passes of " + result.at("study").at("name").get<std::string>(),
              .x_axis = "time, s"};
  for (const Json& one : result.at("classes"))
    chart.end = std::max(chart.end, amount(one, "finish_s"));
  std::vector<std::vector<Span>> passes;
  for (const Json& track : line.at("tracks"))
    for (const Json& level : track.at("levels")) {
      if (level.at("level") != "passes" || passes.size() == kMostLanes) continue;
      passes.push_back(spans_of(level));
      chart.lanes.push_back(
          {.name = name_of_class(result.at("classes"), track.at("class").get<std::size_t>())});
    }
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
    const Json& of = result.at("classes").at(curve.at("class").get<std::size_t>());
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
    const double capacity = amount(memory, "capacity_bytes") / kGiB;
    chart.limits = {{"capacity", capacity},
                    {"without the reserve", capacity - amount(memory, "reserve_bytes") / kGiB}};
    return draw(chart);
  }
  refuse("it has no memory over time of the device with the least room");
}

std::string draw_fabric(const Json& result) {
  const double step = amount(result.at("step"), "time_s");
  Bars chart{.title = "Use of the busiest link of each kind, mean over the step",
             .axis = "part of the bandwidth"};
  for (const Json& group : bundle_of(result).at("link_groups")) {
    const double bandwidth = amount(group, "bandwidth_bytes_per_s");
    if (bandwidth == 0 || step == 0) continue;
    const double use = amount(group, "most_bytes") / bandwidth / step;
    chart.bars.push_back({group.at("what").get<std::string>(), use,
                          fmt::format("{:.1f} % of {}", 100 * use, format(bandwidth * 1_B / 1_s))});
  }
  return draw(chart);
}

}  // namespace foreshard::picture
