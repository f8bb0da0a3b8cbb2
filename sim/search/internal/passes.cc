// Times one pass through a lowered block (passes.h), for layout.cc and members.cc. Times are
// seconds.
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
                             const Kinds& kinds, CostCache& times, std::int32_t stage) {
  WorkTimes result;
  result.of_kinds.resize(kinds.size());
  result.held.reserve(works.all().size());
  for (const program::TaskBody& body : works.all()) {
    if (const auto* kernel = std::get_if<Kernel>(&body)) {
      result.slowest.push_back(times.kernel(*kernel, kinds).slowest);
      for (std::size_t kind = 0; kind < kinds.size(); ++kind)
        result.of_kinds[kind].push_back(times.kernel(*kernel, kinds[kind]));
      result.held.emplace_back();
      continue;
    }
    const auto& what = std::get<Communication>(body);
    FORESHARD_ASSIGN(const TimeRange spread,
                     times.collective(what.kind, what.bytes, groups_of(what, mesh), ranks_of(mesh),
                                      kinds, stage));
    result.slowest.push_back(spread.slowest);
    result.held.push_back(spread.held);
    for (auto& of_kind : result.of_kinds) of_kind.push_back(spread.fastest);
  }
  return result;
}

PassTasks::PassTasks(const program::Block& block, Works& works) {
  for (const program::Task& task : block.tasks) {
    if (const auto* work = std::get_if<program::HostWork>(&task.body)) host_ += work->time;
    if (task.stream.valid()) launches_ += task.launches;
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

std::span<const std::int32_t> PassTasks::after(std::size_t task) const {
  const auto first = static_cast<std::size_t>(tasks_[task].first_after);
  const auto end = task + 1 < tasks_.size() ? static_cast<std::size_t>(tasks_[task + 1].first_after)
                                            : after_.size();
  return std::span(after_).subspan(first, end - first);
}

// Runs each task as early as its stream and dependencies allow. `free`: stream -> when it is free.
template <class TimeOf>
void PassTasks::run(std::vector<Seconds>& free, TimeOf time_of) const {
  std::vector<Seconds> end(tasks_.size());
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const Task& task = tasks_[i];
    Seconds start;
    for (const std::int32_t before : after(i))
      start = std::max(start, end[static_cast<std::size_t>(before)]);
    if (task.stream < 0) {
      end[i] = start;
      continue;
    }
    Seconds& stream = free[static_cast<std::size_t>(task.stream)];
    end[i] = std::max(start, stream) + time_of(task);
    stream = end[i];
  }
}

// P is the chain of tasks that ends last on the compute stream; each of its tasks has waited for
// the one before. A kernel of P runs at the rate 1 - (shares of the communication beside it). So P
// takes the time of its kernels and its own communication and, for each other stream, the delay by
// communication that runs there after one kernel of P and before another: all of that delay, except
// for the part that may run beside communication of P on other streams.
PassTasks::Least PassTasks::least(const std::vector<Seconds>& works,
                                  const std::vector<SmContention>& held) const {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  const std::size_t streams = lower::streams().size();
  std::vector<std::size_t> on_stream(tasks_.size(), kNone);  // task -> the one before on its stream
  std::vector<std::size_t> waited_for(tasks_.size(), kNone);
  std::vector<Seconds> end(tasks_.size());
  std::vector<std::size_t> last(streams, kNone);
  // Communication that waits for nothing may have begun before the block's first kernel.
  const auto time_of = [&](const Task& task) {
    return task.work < 0 || task.may_be_early ? Seconds{}
                                              : works[static_cast<std::size_t>(task.work)];
  };
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const Task& task = tasks_[i];
    const auto wait_for = [&](std::size_t before) {
      if (waited_for[i] == kNone || end[before] > end[waited_for[i]]) waited_for[i] = before;
    };
    for (const std::int32_t before : after(i)) wait_for(static_cast<std::size_t>(before));
    if (task.stream >= 0) {
      std::size_t& previous = last[static_cast<std::size_t>(task.stream)];
      on_stream[i] = previous;
      if (previous != kNone) wait_for(previous);
      previous = i;
    }
    const Seconds start = waited_for[i] == kNone ? Seconds{} : end[waited_for[i]];
    end[i] = start + (task.stream < 0 ? Seconds{} : time_of(task));
  }
  Least least;
  const std::size_t final = last[lower::kComputeStream];
  if (final == kNone) return least;
  least.time = end[final];
  std::vector<bool> is_on(tasks_.size(), false);
  std::vector<Seconds> own(streams);  // stream -> communication of P
  for (std::size_t i = final; i != kNone; i = waited_for[i]) {
    const Task& task = tasks_[i];
    is_on[i] = true;
    if (task.is_kernel || task.stream < 0) continue;
    own[static_cast<std::size_t>(task.stream)] += time_of(task);
    least.exposed += time_of(task);
  }
  const auto may_be_beside = [&](std::size_t i) {
    const Task& task = tasks_[i];
    return !task.is_kernel && task.stream >= 0 && task.work >= 0 && !is_on[i] &&
           !task.may_be_early && held[static_cast<std::size_t>(task.work)].delay > Seconds{};
  };
  bool is_any_beside = false;
  for (std::size_t i = 0; i < tasks_.size(); ++i) is_any_beside |= may_be_beside(i);
  if (!is_any_beside) return least;
  // Tasks that begin after some kernel of P (`behind`), and tasks that end before some kernel of P
  // (`before`).
  std::vector<bool> behind(tasks_.size(), false);
  std::vector<bool> before(tasks_.size(), false);
  const auto each_before = [&](std::size_t i, auto visit) {
    for (const std::int32_t earlier : after(i)) visit(static_cast<std::size_t>(earlier));
    if (on_stream[i] != kNone) visit(on_stream[i]);
  };
  const auto is_kernel_on = [&](std::size_t i) { return is_on[i] && tasks_[i].is_kernel; };
  for (std::size_t i = 0; i < tasks_.size(); ++i)
    each_before(i, [&](std::size_t earlier) {
      if (behind[earlier] || is_kernel_on(earlier)) behind[i] = true;
    });
  for (std::size_t i = tasks_.size(); i-- > 0;)
    if (before[i] || is_kernel_on(i))
      each_before(i, [&](std::size_t earlier) { before[earlier] = true; });
  std::vector<SmContention> beside(streams);
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const Task& task = tasks_[i];
    if (!may_be_beside(i) || !behind[i] || !before[i]) continue;
    const SmContention& of = held[static_cast<std::size_t>(task.work)];
    SmContention& all = beside[static_cast<std::size_t>(task.stream)];
    all.delay += of.delay;
    all.share = std::max(all.share, of.share);
  }
  double shares = 0;
  for (const SmContention& of : beside) shares += of.share;
  if (shares > kMostShare) return least;
  for (std::size_t stream = 0; stream < streams; ++stream)
    least.time += std::max(
        Seconds{}, beside[stream].delay - beside[stream].share * (least.exposed - own[stream]));
  return least;
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
    const Least least = this->least(of_kind, times.held);
    result.least = std::min(result.least, least.time);
    result.exposed = std::max(result.exposed, least.exposed);
    if (times.of_kinds.size() == 1) break;
    result.kernels_of_kinds.push_back(kernels);
    result.least_of_kinds.push_back(least.time);
  }
  result.launches = launches_;
  result.host = host_;
  return result;
}

bool may_be_late(const BlockPass& pass, const BlockTimes& times, Seconds launch) {
  constexpr double kLaunchesBehind = 8;  // assumed for the first task after the pass
  const PassTime& of = times[static_cast<std::size_t>(pass.block)]->of(pass.direction, pass.part);
  return of.hosting(launch) + kLaunchesBehind * launch > of.least;
}

bool is_certain(const BlockPass& pass, const BlockPass& before, bool depends,
                const BlockTimes& times, Seconds launch) {
  if (depends && (before.block < 0 || may_be_late(before, times, launch))) return false;
  return !may_be_late(pass, times, launch);
}

Result<PassTime> pass_time(const program::Block& block, const std::vector<MeshAxis>& mesh,
                           const Kinds& kinds, CostCache& times, std::int32_t stage) {
  Works works;
  const PassTasks tasks(block, works);
  FORESHARD_ASSIGN(const auto found, work_times(works, mesh, kinds, times, stage));
  return tasks.time(found);
}

Result<ModelTimes> model_times(const lower::LoweredModel& model, const Kinds& kinds,
                               CostCache& times, std::int32_t stage) {
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
