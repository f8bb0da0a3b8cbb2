// Live bytes over the time of a step (timeline.h), for sim/simulate/analyse.cc.
#include "sim/memory/timeline.h"

#include <algorithm>

namespace foreshard::memory {
namespace {

Bytes sum(const BytesByKind& live) {
  Bytes total;
  for (const Bytes bytes : live) total += bytes;
  return total;
}

Bytes& of(BytesByKind& live, MemoryKind kind) {
  return live[static_cast<std::size_t>(kind)];
}

// For each of `parts` equal parts of the time, keeps the sample with the most live bytes.
std::vector<Sample> thinned(const std::vector<Sample>& samples, std::size_t parts) {
  if (samples.size() <= parts) return samples;
  const Seconds from = samples.front().time;
  const Seconds span = samples.back().time - from;
  std::vector<Sample> kept;
  std::size_t part_of_last = 0;
  for (const Sample& sample : samples) {
    const double position = (sample.time - from) / span * static_cast<double>(parts);
    const std::size_t part = std::min(static_cast<std::size_t>(position), parts - 1);
    if (kept.empty() || part != part_of_last)
      kept.push_back(sample);
    else if (sum(sample.live) > sum(kept.back().live))
      kept.back() = sample;
    part_of_last = part;
  }
  return kept;
}

}  // namespace

LiveBytes live_bytes(std::span<const program::StaticMemory> resident, std::vector<Event> events,
                     std::size_t curve_samples) {
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.time < b.time; });
  BytesByKind live{};
  for (const auto& buffer : resident) of(live, buffer.kind) += buffer.bytes;

  LiveBytes out{sum(live), Seconds(), live, {}};
  std::vector<Sample> samples{{Seconds(), live}};
  for (std::size_t i = 0; i < events.size();) {
    const Seconds now = events[i].time;
    for (; i < events.size() && events[i].time == now; ++i)
      of(live, events[i].kind) += events[i].delta;
    if (samples.back().time == now)
      samples.back().live = live;
    else if (curve_samples > 0)
      samples.push_back({now, live});
    if (const Bytes total = sum(live); total > out.peak) {
      out.peak = total;
      out.peak_time = now;
      out.at_peak = live;
    }
  }
  if (curve_samples > 0) out.curve = thinned(samples, curve_samples);
  return out;
}

}  // namespace foreshard::memory
