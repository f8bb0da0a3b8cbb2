#include "sim/search/internal/passes.h"

#include <algorithm>
#include <utility>

namespace foreshard::search {

using program::Communication;

std::int32_t Works::of(const program::Task& task) {
  if (!std::holds_alternative<Kernel>(task.body) &&
      !std::holds_alternative<Communication>(task.body))
    return -1;
  auto known = std::ranges::find(all_, task.body);
  if (known == all_.end()) known = all_.insert(known, task.body);
  return static_cast<std::int32_t>(known - all_.begin());
}

Result<WorkTimes> work_times(const Works& works, const std::vector<MeshAxis>& mesh,
                             const Kinds& kinds, Times& times, std::int32_t stage) {
  WorkTimes result;
  result.of_kinds.resize(kinds.size());
  for (const program::TaskBody& body : works.all()) {
    if (const auto* kernel = std::get_if<Kernel>(&body)) {
      result.slowest.push_back(times.kernel(*kernel, kinds).slowest);
      for (std::size_t kind = 0; kind < kinds.size(); ++kind)
        result.of_kinds[kind].push_back(times.kernel(*kernel, kinds[kind]));
      continue;
    }
    const auto& what = std::get<Communication>(body);
    FORESHARD_ASSIGN(const Spread spread,
                     times.collective(what.kind, what.bytes, groups_of(what, mesh), ranks_of(mesh),
                                      kinds, stage));
    result.slowest.push_back(spread.slowest);
    for (auto& of_kind : result.of_kinds) of_kind.push_back(spread.fastest);
  }
  return result;
}

PassTasks::PassTasks(const program::Block& block, Works& works) {
  for (const program::Task& task : block.tasks) {
    if (const auto* work = std::get_if<program::HostWork>(&task.body)) host_ += work->time;
    const bool on_compute = std::holds_alternative<Kernel>(task.body) ||
                            task.stream == lower::stream(lower::kComputeStream);
    tasks_.push_back(
        {.work = works.of(task),
         .stream = task.stream.valid() ? static_cast<std::int32_t>(task.stream.index()) : -1,
         .is_kernel = std::holds_alternative<Kernel>(task.body),
         .may_be_early = !on_compute && task.after.empty(),
         .first_after = static_cast<std::int32_t>(after_.size())});
    after_.insert(after_.end(), task.after.begin(), task.after.end());
  }
}

// Each task as early as its stream and its dependencies allow; `free`: when each stream is.
template <class TimeOf>
void PassTasks::run(std::vector<Seconds>& free, TimeOf time_of) const {
  std::vector<Seconds> end(tasks_.size());
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const Task& task = tasks_[i];
    const auto last_after =
        i + 1 < tasks_.size() ? static_cast<std::size_t>(tasks_[i + 1].first_after) : after_.size();
    Seconds start;
    for (auto before = static_cast<std::size_t>(task.first_after); before < last_after; ++before)
      start = std::max(start, end[static_cast<std::size_t>(after_[before])]);
    if (task.stream < 0) {
      end[i] = start;
      continue;
    }
    Seconds& stream = free[static_cast<std::size_t>(task.stream)];
    end[i] = std::max(start, stream) + time_of(task);
    stream = end[i];
  }
}

PassTime PassTasks::time(const WorkTimes& times) const {
  const std::size_t streams = lower::streams().size();
  PassTime result;
  const auto of_work = [](const std::vector<Seconds>& all, const Task& task) {
    return task.work < 0 ? Seconds{} : all[static_cast<std::size_t>(task.work)];
  };
  const auto slowest = [&](const Task& task) { return of_work(times.slowest, task); };
  std::vector<Seconds> free(streams);
  const auto end_of_pass = [&] {
    run(free, slowest);
    return *std::ranges::max_element(free);
  };
  result.first = end_of_pass();
  const Seconds second = end_of_pass();
  result.next = end_of_pass() - second;

  std::vector<Seconds> busy(streams);
  for (const Task& task : tasks_)
    if (task.stream >= 0) busy[static_cast<std::size_t>(task.stream)] += slowest(task);
  result.busy = *std::ranges::max_element(busy);

  result.least = result.kernels = kNever;
  for (const std::vector<Seconds>& of_kind : times.of_kinds) {
    Seconds kernels;
    for (const Task& task : tasks_)
      if (task.is_kernel) kernels += of_work(of_kind, task);
    result.kernels = std::min(result.kernels, kernels);
    // Communication that waits for nothing may have begun before the block's first kernel.
    std::vector<Seconds> least(streams);
    run(least,
        [&](const Task& task) { return task.may_be_early ? Seconds{} : of_work(of_kind, task); });
    result.least = std::min(result.least, least[lower::kComputeStream]);
    if (times.of_kinds.size() == 1) break;
    result.kernels_of_kinds.push_back(kernels);
    result.least_of_kinds.push_back(least[lower::kComputeStream]);
  }
  for (const Task& task : tasks_)
    if (task.stream >= 0) ++result.launches;
  result.host = host_;
  return result;
}

Result<PassTime> pass_time(const program::Block& block, const std::vector<MeshAxis>& mesh,
                           const Kinds& kinds, Times& times, std::int32_t stage) {
  Works works;
  const PassTasks tasks(block, works);
  FORESHARD_ASSIGN(const auto found, work_times(works, mesh, kinds, times, stage));
  return tasks.time(found);
}

Result<ModelTimes> model_times(const lower::LoweredModel& model, const Kinds& kinds, Times& times,
                               std::int32_t stage) {
  ModelTimes result;
  for (const lower::LoweredBlock* block : model.all()) {
    const auto of = [&](const lower::Pieces& pass) {
      return pass_time(lower::only_block(pass), model.mesh, kinds, times, stage);
    };
    PassTimes& passes = result.emplace_back();
    FORESHARD_ASSIGN(passes.forward, of(block->forward));
    FORESHARD_ASSIGN(passes.backward, of(block->backward));
    if (!block->split) continue;
    FORESHARD_ASSIGN(passes.input, of(block->split->input));
    FORESHARD_ASSIGN(passes.weight, of(block->split->weight));
  }
  return result;
}

}  // namespace foreshard::search
