#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "base/file.h"

#include "validate/compare/timeline.h"
#include "validate/compare/write.h"

namespace foreshard::compare {
namespace {

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The host is thread 0, stream s is thread s + 1.
int thread_of(std::int32_t stream) {
  return stream < 0 ? 0 : stream + 1;
}

class Writer {
 public:
  explicit Writer(const program::Program& program) : program_(program) {}

  void add(const RankTimes& rank, const program::Expansion& expansion,
           const std::vector<Times>& times, std::string_view side, int process) {
    metadata(process, 0, "process_name",
             fmt::format("{{\"name\":{}}}", json_text(fmt::format("rank {} {}", rank.rank, side))));
    metadata(process, 0, "process_sort_index", fmt::format("{{\"sort_index\":{}}}", process));
    std::set<int> threads;
    for (std::size_t i = 0; i < times.size(); ++i) {
      const program::Instance& instance = expansion.instances[i];
      if (threads.insert(thread_of(instance.stream)).second)
        metadata(
            process, thread_of(instance.stream), "thread_name",
            fmt::format(
                "{{\"name\":{}}}",
                json_text(instance.stream < 0
                              ? "host"
                              : program_.streams[static_cast<std::size_t>(instance.stream)].name)));
      const program::Role& role = program_.roles[rank.role];
      const program::Task& task = program::task_of(program_, role, instance);
      const program::Call& call = role.calls[static_cast<std::size_t>(instance.call)];
      const std::string args =
          fmt::format("{{\"block\":{},\"layer\":{},\"micro_batch\":{},\"instance\":{}}}",
                      json_text(program_.blocks[call.block.index()].name),
                      call.layer(instance.iteration), call.micro_batch, i);
      const int thread = thread_of(instance.stream);
      if (times[i].reached < times[i].begin)
        event(process, thread, times[i].reached, times[i].begin, "wait: " + task.name, "waiting",
              args);
      event(process, thread, times[i].begin, times[i].finish, task.name, category_of(task), args);
    }
  }

  std::string finish() && { return std::move(out_) + "\n]}\n"; }

 private:
  static std::string_view category_of(const program::Task& task) {
    if (std::holds_alternative<program::Communication>(task.body)) return "communication";
    if (std::holds_alternative<Kernel>(task.body)) return task.optimizer ? "optimizer" : "compute";
    return "host";
  }
  void metadata(int process, int thread, std::string_view what, std::string_view args) {
    next(fmt::format("{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"{}\",\"args\":{}}}", process,
                     thread, what, args));
  }
  void event(int process, int thread, Seconds begin, Seconds end, const std::string& name,
             std::string_view category, const std::string& args) {
    next(fmt::format(
        "{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"name\":"
        "{},\"cat\":\"{}\",\"args\":{}}}",
        process, thread, begin / 1_us, (end - begin) / 1_us, json_text(name), category, args));
  }
  void next(std::string_view event) {
    out_ += std::exchange(first_, false) ? "\n" : ",\n";
    out_ += event;
  }

  const program::Program& program_;
  std::string out_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  bool first_ = true;
};

}  // namespace

Status write_trace(const std::filesystem::path& path, const program::Program& program,
                   const sim::Prediction& prediction, const measure::Measurement& measurement) {
  const Timelines lines = timelines_of(program, prediction, measurement);
  Writer writer(program);
  int process = 0;
  for (const RankTimes& rank : lines.ranks) {
    const program::Expansion& expansion = lines.expansions[rank.role];
    writer.add(rank, expansion, rank.measured, "measured", process++);
    writer.add(rank, expansion, rank.predicted, "predicted", process++);
  }
  return write_file(path, std::move(writer).finish());
}

}  // namespace foreshard::compare
