// Writes the timeline of a step in the Trace Event Format, for trace.cc. Times in the file are
// microseconds. Source: "Trace Event Format", Google, 2016.
#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/report/internal/trace_formats.h"
#include "sim/report/spans.h"

namespace foreshard::report {
namespace {

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The host is thread 0, stream s is thread s + 1.
int thread_of(std::int32_t stream) {
  return stream < 0 ? 0 : stream + 1;
}

std::string_view category_of(const program::Task& task) {
  if (std::holds_alternative<program::Communication>(task.body)) return "communication";
  if (std::holds_alternative<Kernel>(task.body)) return task.optimizer ? "optimizer" : "compute";
  return "host";
}

std::string microseconds(std::int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

class Writer {
 public:
  Writer(NewFileByName& file, const program::Program& program) : file_(file) {
    for (const program::Block& block : program.blocks) {
      std::vector<Words> words;
      for (const program::Task& task : block.tasks)
        words.push_back({json_text(task.name), category_of(task)});
      blocks_.push_back({json_text(block.name), std::move(words)});
    }
    out_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  }

  void name_process(std::size_t process, const sim::DeviceClass& one) {
    metadata(process, 0, "process_name",
             fmt::format("{{\"name\":{}}}", json_text(name_of_class(one))));
    metadata(process, 0, "process_sort_index", fmt::format("{{\"sort_index\":{}}}", process));
  }

  void name_thread(std::int32_t process, std::int32_t stream, std::string_view name) {
    metadata(static_cast<std::size_t>(process), thread_of(stream), "thread_name",
             fmt::format("{{\"name\":{}}}", json_text(name)));
  }

  void task(const sim::TimelineEntry& entry) {
    const auto& [block, tasks] = blocks_[static_cast<std::size_t>(entry.block)];
    const Words& words = tasks[static_cast<std::size_t>(entry.task)];
    slice(static_cast<std::size_t>(entry.device_class), thread_of(entry.stream),
          {nanoseconds(entry.start), nanoseconds(entry.finish)}, words.name, words.category,
          fmt::format("{{\"block\":{},\"layer\":{},\"chunk\":{},\"micro_batch\":{}}}", block,
                      entry.layer, entry.chunk, entry.micro_batch));
  }

  // One process, with a thread for each track.
  void disturbances(std::size_t process, const std::vector<HitTrack>& tracks) {
    metadata(process, 0, "process_name", "{\"name\":\"disturbances\"}");
    metadata(process, 0, "process_sort_index", fmt::format("{{\"sort_index\":{}}}", process));
    for (std::size_t i = 0; i < tracks.size(); ++i) {
      const int thread = static_cast<int>(i);
      metadata(process, thread, "thread_name",
               fmt::format("{{\"name\":{}}}", json_text(tracks[i].kind)));
      for (const auto& [start, finish, hit] : tracks[i].hits)
        slice(process, thread, {nanoseconds(start), nanoseconds(finish)}, json_text(hit->effect),
              "disturbance",
              fmt::format("{{\"count\":{},\"who\":{}}}", hit->count,
                          json_text(fmt::format("{}", fmt::join(hit->who, ", ")))));
    }
  }

  /// \return the first error of the file.
  Status end() {
    out_ += "\n]}\n";
    flush();
    return status_;
  }

 private:
  struct Words {
    std::string name;  ///< Quoted.
    std::string_view category;
  };

  struct Slice {
    std::int64_t start;  ///< Nanoseconds.
    std::int64_t finish;
  };

  void slice(std::size_t process, int thread, const Slice& when, std::string_view name,
             std::string_view category, std::string_view args) {
    next(
        fmt::format("{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"name\":{},"
                    "\"cat\":\"{}\",\"args\":{}}}",
                    process, thread, microseconds(when.start),
                    microseconds(when.finish - when.start), name, category, args));
  }

  void metadata(std::size_t process, int thread, std::string_view what, std::string_view args) {
    next(fmt::format("{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"{}\",\"args\":{}}}", process,
                     thread, what, args));
  }

  void next(std::string_view event) {
    out_ += std::exchange(first_, false) ? "\n" : ",\n";
    out_ += event;
    constexpr std::size_t kPiece = 1 << 20;
    if (out_.size() > kPiece) flush();
  }

  void flush() {
    if (status_.ok()) status_ = file_.append(out_);
    out_.clear();
  }

  NewFileByName& file_;
  std::string out_;
  Status status_;
  std::vector<std::pair<std::string, std::vector<Words>>> blocks_;
  bool first_ = true;
};

}  // namespace

Status write_json_trace(NewFileByName& file, const sim::Prediction& prediction,
                        const program::Program& program) {
  Writer writer(file, program);
  for (std::size_t i = 0; i < prediction.classes.size(); ++i)
    writer.name_process(i, prediction.classes[i]);
  std::set<std::pair<std::int32_t, std::int32_t>> threads;
  for (const sim::TimelineEntry& entry : prediction.timeline)
    threads.emplace(entry.device_class, std::max(entry.stream, -1));
  for (const auto& [process, stream] : threads)
    writer.name_thread(
        process, stream,
        stream < 0 ? "host" : program.streams[static_cast<std::size_t>(stream)].name);
  for (const sim::TimelineEntry& entry : prediction.timeline) writer.task(entry);
  if (prediction.disturbances)
    writer.disturbances(prediction.classes.size(), hit_tracks_of(prediction));
  return writer.end();
}

}  // namespace foreshard::report
