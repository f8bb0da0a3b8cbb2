// Writes the timeline of a step as a trace of Perfetto, for trace.cc.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/perfetto/perfetto.h"
#include "base/quantity.h"

#include "sim/report/internal/trace_formats.h"
#include "sim/report/spans.h"

namespace foreshard::report {
namespace {

using perfetto::ProcessId;
using perfetto::Slice;
using program::CollectiveKind;
using program::Communication;

class Tracer {
 public:
  Tracer(NewFileByName& file, const sim::Prediction& prediction, const program::Program& program)
      : writer_([&](std::string_view bytes) { return file.append(bytes); }),
        prediction_(prediction),
        program_(program),
        spans_(spans_of(prediction, program)) {}

  Status write() {
    if (!prediction_.critical_path.empty()) critical_ = writer_.add_process("critical path");
    for (const sim::DeviceClass& one : prediction_.classes)
      processes_.push_back(writer_.add_process(name_of_class(one)));
    for (std::size_t c = 0; c < prediction_.classes.size(); ++c) add_memory(c);
    // An arrow begins at the track that comes first.
    std::stable_partition(spans_.tracks.begin(), spans_.tracks.end(),
                          [&](const SpanTrack& track) { return !has_receives(track); });
    for (const SpanTrack& track : spans_.tracks) add_track(track);
    add_links();
    add_disturbances();
    return writer_.status();
  }

 private:
  const Communication* communication_of(const Span& span) const {
    if (span.task == nullptr) return nullptr;
    const program::Block& block = program_.blocks[static_cast<std::size_t>(span.task->block)];
    return std::get_if<Communication>(&block.tasks[static_cast<std::size_t>(span.task->task)].body);
  }

  bool has_receives(const SpanTrack& track) const {
    return std::ranges::any_of(track.levels.back().spans, [&](const Span& span) {
      const Communication* what = communication_of(span);
      return what != nullptr && what->kind == CollectiveKind::kReceive;
    });
  }

  void add_track(const SpanTrack& track) {
    std::vector<Slice> slices;
    for (const SpanLevel& level : track.levels)
      for (const Span& span : level.spans) slices.push_back(slice_of(span, level.level));
    writer_.add_track(
        track.device_class ? processes_[static_cast<std::size_t>(*track.device_class)] : critical_,
        track.stream, std::move(slices));
  }

  Slice slice_of(const Span& span, std::string_view level) const {
    const SpanName& name = spans_.names[static_cast<std::size_t>(span.name)];
    Slice slice{.start = nanoseconds(span.start),
                .finish = nanoseconds(span.finish),
                .name = name.name,
                .category = name.style};
    if (level != "tasks")
      slice.arguments = {{level == "passes" ? "micro_batch" : "layer", span.number}};
    if (const Communication* what = communication_of(span)) describe(*what, *span.task, slice);
    return slice;
  }

  void describe(const Communication& what, const sim::TimelineEntry& task, Slice& slice) const {
    slice.arguments = {{"micro_batch", task.micro_batch},
                       {"layer", task.layer},
                       {"bytes", std::llround(what.bytes.in_base())}};
    const auto form = prediction_.forms.find({task.device_class, task.block, task.task});
    if (form != prediction_.forms.end()) {
      const auto& [algorithm, protocol] = form->second;
      if (!algorithm.empty()) slice.arguments.emplace_back("algorithm", algorithm);
      if (!protocol.empty()) slice.arguments.emplace_back("protocol", protocol);
    }
    if (what.kind == CollectiveKind::kSend || what.kind == CollectiveKind::kReceive)
      slice.flow = static_cast<std::uint64_t>(*task.operation) + 1;
  }

  void add_memory(std::size_t of_class) {
    const auto& curve = prediction_.classes[of_class].memory.curve;
    std::vector<perfetto::Sample> all;
    for (std::size_t kind = 0; kind < memory::kMemoryKinds; ++kind) {
      std::vector<perfetto::Sample> samples;
      samples.reserve(curve.size());
      for (const memory::Sample& sample : curve)
        samples.push_back({nanoseconds(sample.time), sample.live[kind].in_base()});
      if (all.empty()) all.resize(samples.size());
      for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = {samples[i].time, all[i].value + samples[i].value};
      const auto name =
          fmt::format("memory of {}", program::name_of(static_cast<program::MemoryKind>(kind)));
      if (std::ranges::any_of(samples, [](const auto& sample) { return sample.value > 0; }))
        writer_.add_counter(processes_[of_class], name, perfetto::Unit::kBytes, samples);
    }
    writer_.add_counter(processes_[of_class], "memory", perfetto::Unit::kBytes, all);
  }

  void add_links() {
    if (prediction_.link_groups.empty()) return;
    const ProcessId links = writer_.add_process("links: mean use in %");
    for (const sim::LinkGroupUse& group : prediction_.link_groups) {
      constexpr double kPercent = 100;
      std::vector<perfetto::Sample> samples;
      const auto parts = static_cast<double>(group.use_over_time.size());
      for (const double use : group.use_over_time)
        samples.push_back(
            {nanoseconds(prediction_.step * (static_cast<double>(samples.size()) / parts)),
             kPercent * use});
      writer_.add_counter(
          links, fmt::format("{} ({} of {})", group.what, group.links, format(group.bandwidth)),
          perfetto::Unit::kNone, samples);
    }
  }

  void add_disturbances() {
    if (!prediction_.disturbances) return;
    const ProcessId process = writer_.add_process("disturbances");
    for (const HitTrack& track : hit_tracks_of(prediction_)) {
      std::vector<std::string> who;
      for (const HitSpan& one : track.hits)
        who.push_back(fmt::format("{}", fmt::join(one.hit->who, ", ")));
      std::vector<Slice> slices;
      for (const auto& [start, finish, hit] : track.hits)
        slices.push_back({.start = nanoseconds(start),
                          .finish = nanoseconds(finish),
                          .name = hit->effect,
                          .category = "disturbance",
                          .arguments = {{"count", hit->count}, {"who", who[slices.size()]}}});
      writer_.add_track(process, track.kind, std::move(slices));
    }
  }

  perfetto::Writer writer_;
  const sim::Prediction& prediction_;
  const program::Program& program_;
  Spans spans_;
  ProcessId critical_;
  std::vector<ProcessId> processes_;  // class -> its process
};

}  // namespace

Status write_perfetto_trace(NewFileByName& file, const sim::Prediction& prediction,
                            const program::Program& program) {
  return Tracer(file, prediction, program).write();
}

}  // namespace foreshard::report
