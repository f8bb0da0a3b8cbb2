#include "strategies/search/times.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/check.h"

namespace foreshard::search {
namespace {

using program::Communication;
using program::Task;

struct TaskTime {
  Seconds slowest;
  Seconds fastest;
};

bool on_compute(const Task& task) {
  return std::holds_alternative<Kernel>(task.body) ||
         task.stream == lower::stream(lower::kComputeStream);
}

Result<Spread> communication(const Communication& what, const std::vector<MeshAxis>& mesh,
                             Times& times, bool all) {
  const auto* group = std::get_if<program::AxisGroup>(&what.group);
  FORESHARD_CHECK(group != nullptr && group->axes.size() == 1 && group->coordinates.empty());
  return times.collective(what.kind, what.bytes, line_of(mesh, group->axes.front()), all);
}

Result<std::vector<TaskTime>> task_times(const program::Block& block,
                                         const std::vector<MeshAxis>& mesh, Times& times) {
  std::vector<TaskTime> result;
  for (const Task& task : block.tasks) {
    Spread spread;
    if (const auto* kernel = std::get_if<Kernel>(&task.body)) {
      spread = times.kernel(*kernel);
    } else if (const auto* what = std::get_if<Communication>(&task.body)) {
      const auto found = communication(*what, mesh, times, true);
      if (!found) return found.error();
      spread = *found;
    }
    result.push_back({spread.slowest, spread.fastest});
  }
  return result;
}

// Each task as early as its stream and its dependencies allow.
class Schedule {
 public:
  explicit Schedule(std::size_t streams) : free_(streams) {}

  template <class TimeOf>
  void run(const program::Block& block, TimeOf time_of) {
    std::vector<Seconds> end(block.tasks.size());
    for (std::size_t i = 0; i < block.tasks.size(); ++i) {
      const Task& task = block.tasks[i];
      Seconds start = begin_;
      for (const std::int32_t before : task.after)
        start = std::max(start, end[static_cast<std::size_t>(before)]);
      if (!task.stream.valid()) {
        end[i] = start;
        continue;
      }
      Seconds& free = free_[task.stream.index()];
      end[i] = std::max(start, free) + time_of(i);
      free = end[i];
    }
  }
  // The end of all its tasks.
  Seconds end() const { return *std::ranges::max_element(free_); }
  Seconds compute_end() const { return free_[lower::kComputeStream]; }

 private:
  Seconds begin_;
  std::vector<Seconds> free_;
};

}  // namespace

Line line_of(const std::vector<MeshAxis>& mesh, Axis axis) {
  Line line;
  const auto index = static_cast<std::size_t>(axis);
  for (std::size_t i = 0; i < index; ++i) line.stride *= mesh[i].size;
  line.size = mesh[index].size;
  return line;
}

Spread Times::kernel(const Kernel& kernel) {
  if (const auto it = kernels_.find(kernel); it != kernels_.end()) return it->second;
  Spread spread{.slowest = {},
                .fastest = Seconds::from_base(std::numeric_limits<double>::infinity())};
  for (std::size_t type = 0; type < cluster_.device_types().size(); ++type) {
    const Seconds time = cost_.kernel_time(kernel, DeviceTypeId{static_cast<std::int64_t>(type)});
    spread.slowest = std::max(spread.slowest, time);
    spread.fastest = std::min(spread.fastest, time);
  }
  return kernels_.emplace(kernel, spread).first->second;
}

Result<Spread> Times::collective(program::CollectiveKind kind, Bytes bytes, Line line, bool all) {
  const auto key = std::tuple(kind, bytes.in_base(), line, all);
  if (const auto it = collectives_.find(key); it != collectives_.end()) return it->second;
  Spread spread{.slowest = {},
                .fastest = Seconds::from_base(std::numeric_limits<double>::infinity())};
  const auto ranks = static_cast<std::int64_t>(cluster_.devices().size());
  const std::int64_t groups = ranks / line.size;
  for (std::int64_t g = 0; g < groups; ++g) {
    if (!all && g > 0 && g + 1 < groups) continue;
    const std::int64_t first = g / line.stride * line.stride * line.size + g % line.stride;
    std::vector<DeviceId> devices;
    for (std::int64_t i = 0; i < line.size; ++i) devices.emplace_back(first + i * line.stride);
    const auto time = cost_.communication_time(kind, bytes, devices);
    if (!time) return time.error();
    spread.slowest = std::max(spread.slowest, *time);
    spread.fastest = std::min(spread.fastest, *time);
  }
  // Hashed paths differ from one operation to the next: the best case is not known.
  if (cluster_.routing() == Routing::kEcmpHash) spread.fastest = Seconds{};
  return collectives_.emplace(key, spread).first->second;
}

Result<Seconds> Times::ends(program::CollectiveKind kind, Bytes bytes, Line line) const {
  return cost_.communication_time(kind, bytes,
                                  {DeviceId{0}, DeviceId{(line.size - 1) * line.stride}});
}

Result<Seconds> Times::transfer(Bytes bytes, Line line) {
  const auto key = std::pair(bytes.in_base(), line);
  if (const auto it = transfers_.find(key); it != transfers_.end()) return it->second;
  Seconds slowest;
  for (std::int64_t i = 0; i + 1 < line.size; ++i) {
    const auto time =
        cost_.communication_time(program::CollectiveKind::kSend, bytes,
                                 {DeviceId{i * line.stride}, DeviceId{(i + 1) * line.stride}});
    if (!time) return time;
    slowest = std::max(slowest, *time);
  }
  return transfers_.emplace(key, slowest).first->second;
}

Result<PassTime> pass_time(const program::Block& block, const std::vector<MeshAxis>& mesh,
                           Times& times) {
  const auto found = task_times(block, mesh, times);
  if (!found) return found.error();
  const auto& of = *found;
  const std::size_t streams = lower::streams().size();
  PassTime result;
  Schedule likely(streams);
  const auto slowest = [&](std::size_t i) { return of[i].slowest; };
  likely.run(block, slowest);
  result.first = likely.end();
  likely.run(block, slowest);
  const Seconds second = likely.end();
  likely.run(block, slowest);
  result.next = likely.end() - second;

  // Communication that waits for nothing may have begun before the block's first kernel.
  Schedule least(streams);
  least.run(block, [&](std::size_t i) {
    const Task& task = block.tasks[i];
    return on_compute(task) || !task.after.empty() ? of[i].fastest : Seconds{};
  });
  result.bound = least.compute_end();
  for (const Task& task : block.tasks) {
    if (task.stream.valid()) ++result.launches;
  }
  return result;
}

Result<Seconds> chain_time(const program::Block& block, const std::vector<MeshAxis>& mesh,
                           Times& times) {
  Seconds sum;
  for (const Task& task : block.tasks) {
    const auto* what = std::get_if<Communication>(&task.body);
    if (what == nullptr) continue;
    const auto time = communication(*what, mesh, times, false);
    if (!time) return time.error();
    sum += time->slowest;
  }
  return sum;
}

Result<ModelTimes> model_times(const lower::LoweredModel& model, Times& times) {
  ModelTimes result;
  struct Part {
    const program::Block& block;
    PassTime& into;
  };
  for (const Part& part : {Part{model.embedding.forward, result.embedding.forward},
                           Part{model.embedding.backward, result.embedding.backward},
                           Part{model.layer.forward, result.layer.forward},
                           Part{model.layer.backward, result.layer.backward},
                           Part{model.head.forward, result.head.forward},
                           Part{model.head.backward, result.head.backward}}) {
    const auto time = pass_time(part.block, model.mesh, times);
    if (!time) return time.error();
    part.into = *time;
  }
  return result;
}

}  // namespace foreshard::search
