// Reads the spans of a step off its timeline (spans.h), for time_line.cc and the writers of traces.
#include "sim/report/spans.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <variant>

namespace foreshard::report {
namespace {

using sim::TimelineEntry;

// The kind of pass that a block belongs to, by the names that lowering gives to blocks; nothing for
// blocks of communication and of memory alone.
std::optional<std::string_view> pass_of(const program::Block& block) {
  const std::string_view name = block.name;
  const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
  if (has(".backward_weight")) return "weight gradient";
  if (has(".backward") || has(".again")) return "backward";  // again: recomputed before it
  if (has(".forward")) return "forward";
  const bool steps = std::ranges::any_of(block.tasks, &program::Task::optimizer);
  return steps ? std::optional<std::string_view>("optimizer") : std::nullopt;
}

std::string_view style_of(program::Purpose purpose) {
  switch (purpose) {
    case program::Purpose::kTensor:
      return "tp_comm";
    case program::Purpose::kContext:
      return "cp_comm";
    case program::Purpose::kExpert:
      return "ep_comm";
    case program::Purpose::kPipeline:
      return "pp_comm";
    case program::Purpose::kData:
      return "dp_comm";
    case program::Purpose::kOffload:
      return "host";
  }
  return "host";
}

std::string style_of(const program::Task& task, std::optional<std::string_view> pass) {
  if (const auto* communication = std::get_if<program::Communication>(&task.body))
    return std::string(style_of(communication->purpose));
  if (!std::holds_alternative<Kernel>(task.body)) return "host";
  return task.optimizer ? "optimizer" : std::string(pass.value_or("compute"));
}

class Builder {
 public:
  Builder(const sim::Prediction& prediction, const program::Program& program)
      : prediction_(prediction), program_(program) {
    for (const program::Block& block : program.blocks) passes_.push_back(pass_of(block));
  }

  Spans build() {
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<const TimelineEntry*>> tracks;
    for (const TimelineEntry& entry : prediction_.timeline)
      if (entry.finish > entry.start)
        tracks[{entry.device_class, std::max(entry.stream, -1)}].push_back(&entry);
    if (!prediction_.critical_path.empty())
      spans_.tracks.push_back(
          {.device_class = {}, .stream = "critical path", .levels = {{"tasks", critical()}}});
    for (auto& [key, entries] : tracks) {
      std::ranges::stable_sort(entries, {}, &TimelineEntry::start);
      const auto& [device_class, stream] = key;
      SpanTrack track{.device_class = device_class, .stream = name_of_stream(stream)};
      if (stream == 0) {
        track.levels.push_back({"passes", passes(entries)});
        track.levels.push_back({"layers", layers(entries)});
      }
      track.levels.push_back({"tasks", tasks(entries)});
      spans_.tracks.push_back(std::move(track));
    }
    return std::move(spans_);
  }

 private:
  using Entries = std::vector<const TimelineEntry*>;

  std::string name_of_stream(std::int32_t stream) const {
    return stream < 0 ? "host" : program_.streams[static_cast<std::size_t>(stream)].name;
  }
  const program::Block& block_of(const TimelineEntry& entry) const {
    return program_.blocks[static_cast<std::size_t>(entry.block)];
  }
  std::optional<std::string_view> pass_of_entry(const TimelineEntry& entry) const {
    return passes_[static_cast<std::size_t>(entry.block)];
  }

  std::int32_t name(std::string text, std::string style) {
    const auto [found, is_new] =
        names_.try_emplace({text, style}, static_cast<std::int32_t>(spans_.names.size()));
    if (is_new) spans_.names.push_back({std::move(text), std::move(style)});
    return found->second;
  }

  // One span for each run of entries that `same` says belong together; entries outside of passes
  // end a run.
  std::vector<Span> runs(
      const Entries& entries,
      const std::function<bool(const TimelineEntry&, const TimelineEntry&)>& same,
      const std::function<Span(const TimelineEntry&)>& named) {
    std::vector<Span> spans;
    const TimelineEntry* previous = nullptr;
    for (const TimelineEntry* entry : entries) {
      if (!pass_of_entry(*entry)) continue;
      if (previous == nullptr || !same(*previous, *entry)) {
        spans.push_back(named(*entry));
        spans.back().start = entry->start;
      }
      spans.back().finish = entry->finish;
      previous = entry;
    }
    return spans;
  }

  // The optimizer stands still between its norm and its updates until other stages are done: the
  // wait is no part of a pass.
  bool waits_for_others(const TimelineEntry& a, const TimelineEntry& b) const {
    constexpr double kPause = 1e-3;  // part of the step
    return pass_of_entry(a) == "optimizer" && b.start - a.finish > kPause * prediction_.step;
  }

  std::vector<Span> passes(const Entries& entries) {
    return runs(
        entries,
        [&](const TimelineEntry& a, const TimelineEntry& b) {
          return pass_of_entry(a) == pass_of_entry(b) && a.chunk == b.chunk &&
                 a.micro_batch == b.micro_batch && !waits_for_others(a, b);
        },
        [&](const TimelineEntry& entry) {
          const std::string pass(*pass_of_entry(entry));
          return Span{.name = name(pass, pass), .number = entry.micro_batch};
        });
  }

  std::vector<Span> layers(const Entries& entries) {
    return runs(
        entries,
        [&](const TimelineEntry& a, const TimelineEntry& b) {
          return a.block == b.block && a.layer == b.layer && a.micro_batch == b.micro_batch &&
                 a.chunk == b.chunk && !waits_for_others(a, b);
        },
        [&](const TimelineEntry& entry) {
          return Span{.name = name(block_of(entry).name, std::string(*pass_of_entry(entry))),
                      .number = entry.layer};
        });
  }

  std::vector<Span> tasks(const Entries& entries) {
    std::vector<Span> spans;
    for (const TimelineEntry* entry : entries) {
      spans.push_back({.start = entry->start,
                       .finish = entry->finish,
                       .name = task_name(entry->block, entry->task),
                       .number = entry->layer,
                       .task = entry});
    }
    return spans;
  }

  std::int32_t task_name(std::int32_t of_block, std::int32_t of_task) {
    auto& known = task_names_[{of_block, of_task}];
    if (!known) {
      const auto b = static_cast<std::size_t>(of_block);
      const program::Block& block = program_.blocks[b];
      const program::Task& task = block.tasks[static_cast<std::size_t>(of_task)];
      known = name(block.name + " / " + task.name, style_of(task, passes_[b]));
    }
    return *known;
  }

  std::vector<Span> critical() {
    std::vector<Span> spans;
    for (const sim::CriticalTask& task : prediction_.critical_path)
      if (task.finish > task.start)
        spans.push_back({.start = task.start,
                         .finish = task.finish,
                         .name = task_name(task.block, task.task),
                         .number = task.layer});
    return spans;
  }

  const sim::Prediction& prediction_;
  const program::Program& program_;
  std::vector<std::optional<std::string_view>> passes_;  // block -> its kind of pass
  std::map<std::pair<std::string, std::string>, std::int32_t> names_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::optional<std::int32_t>> task_names_;
  Spans spans_;
};

}  // namespace

Spans spans_of(const sim::Prediction& prediction, const program::Program& program) {
  return Builder(prediction, program).build();
}

std::vector<HitTrack> hit_tracks_of(const sim::Prediction& prediction) {
  std::vector<HitSpan> hits;
  if (prediction.disturbances)
    for (const disturbance::Hit& hit : prediction.disturbances->hits)
      if (hit.at <= prediction.step)
        hits.push_back({hit.at, std::min(hit.until, prediction.step), &hit});
  std::ranges::stable_sort(hits, {}, &HitSpan::start);
  std::vector<HitTrack> tracks;
  for (const HitSpan& one : hits) {
    auto track = std::ranges::find_if(tracks, [&](const HitTrack& each) {
      return each.kind == one.hit->kind &&
             nanoseconds(each.hits.back().finish) <= nanoseconds(one.start);
    });
    if (track == tracks.end()) track = tracks.insert(tracks.end(), {one.hit->kind, {}});
    track->hits.push_back(one);
  }
  return tracks;
}

std::int64_t nanoseconds(Seconds time) {
  return std::llround(time / 1_ns);
}

}  // namespace foreshard::report
