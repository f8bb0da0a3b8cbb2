// Rule 3 of match.h: kernels that serve many purposes, by the tasks that run before and after them.
#include <algorithm>
#include <map>

#include "validate/profile/internal/step_match.h"

namespace foreshard::profile::internal {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

const Kernel* kernel_in(const ProfiledTask& task) {
  return std::get_if<Kernel>(&task.task->body);
}
bool is_pass(const ProfiledTask& task) {
  const Kernel* kernel = kernel_in(task);
  return kernel != nullptr && std::holds_alternative<Pass>(*kernel);
}

// Whether the kernel is unmatched and may be a pass.
bool is_open(const StepMatch& step, std::size_t kernel) {
  const KernelName* line = step.match.line_of[kernel];
  return step.free(kernel) && line != nullptr &&
         std::ranges::any_of(line->kinds, [](const std::string& kind) {
           return kind == kAnyPass || find_pass(kind) != nullptr;
         });
}

}  // namespace

void match_by_place(StepMatch& step) {
  // Some schedules run phases concurrently, so the order is looked at within each phase.
  std::map<MaybePhase, std::vector<std::size_t>> by_phase;
  for (const std::size_t kernel : step.kernels) by_phase[step.phase_of[kernel]].push_back(kernel);
  for (const auto& [phase, kernels] : by_phase) {
    std::vector<std::size_t> passes;
    for (const std::size_t task : step.tasks)
      if (is_pass(step.match.tasks[task]) && (!phase || step.phase_of_task[task] == phase))
        passes.push_back(task);
    if (passes.empty()) continue;
    // For each kernel, the task of the next kernel that is matched to a computing task.
    std::vector<std::size_t> behind(kernels.size(), kNone);
    const auto task_of = [&](std::size_t kernel) {
      if (step.free(kernel)) return kNone;
      const auto task = static_cast<std::size_t>(step.match.task_of[kernel]);
      return kernel_in(step.match.tasks[task]) == nullptr ? kNone : task;
    };
    std::size_t next = kNone;
    for (std::size_t i = kernels.size(); i-- > 0;) {
      behind[i] = next;
      if (const std::size_t task = task_of(kernels[i]); task != kNone) next = task;
    }
    struct Gift {
      std::size_t kernel;
      std::vector<std::size_t> tasks;
    };
    std::vector<Gift> gifts;
    std::size_t last = kNone;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      if (const std::size_t task = task_of(kernels[i]); task != kNone) last = task;
      if (!is_open(step, kernels[i])) continue;
      // Without neighbours and without a phase it has no place.
      if (!phase && last == kNone && behind[i] == kNone) continue;
      std::size_t low = last == kNone ? step.tasks.front() : last;
      std::size_t high = behind[i] == kNone ? step.tasks.back() : behind[i];
      if (low > high) std::swap(low, high);
      const auto begin = std::ranges::lower_bound(passes, low);
      const auto end = std::ranges::upper_bound(passes, high);
      Gift gift{.kernel = kernels[i], .tasks = {}};
      std::copy_if(begin, end, std::back_inserter(gift.tasks),
                   [&](std::size_t task) { return step.bare(task); });
      if (gift.tasks.empty()) gift.tasks.assign(begin, end);
      // It is inside a task that several kernels run: take the next pass of the same call.
      if (gift.tasks.empty() && end != passes.end() &&
          step.match.tasks[*end].call == step.match.tasks[high].call)
        gift.tasks.push_back(*end);
      if (!gift.tasks.empty()) gifts.push_back(std::move(gift));
    }
    for (const Gift& gift : gifts) {
      Seconds all{};
      for (const std::size_t task : gift.tasks) all += step.match.tasks[task].expected;
      const Seconds time = step.trace.kernels[gift.kernel].lasted;
      for (const std::size_t task : gift.tasks) {
        ProfiledTask& one = step.match.tasks[task];
        one.measured +=
            all > 0_s ? (one.expected / all) * time : time / static_cast<double>(gift.tasks.size());
        one.kernels += 1;
        if (one.by == MatchedBy::kNothing) one.by = MatchedBy::kPlace;
      }
      step.match.kernels[gift.kernel] = MatchedBy::kPlace;
      step.match.task_of[gift.kernel] = static_cast<std::int32_t>(gift.tasks.front());
    }
  }
}

}  // namespace foreshard::profile::internal
