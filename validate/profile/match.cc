// Matches kernels of a trace with tasks of a Program (match.h), for `foreshard calibrate
// --profile`. Kernels and tasks that find no partner are counted, not forced together.
#include "validate/profile/match.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "base/text.h"

#include "strategies/program/ir/expand.h"
#include "strategies/program/ir/group.h"
#include "validate/profile/internal/step_match.h"
#include "validate/profile/kineto.h"

namespace foreshard::profile {
namespace {

using internal::MaybePhase;
using internal::StepMatch;

constexpr std::string_view kStepRange = "ProfilerStep";
// Source: pytorch/pytorch, torch/optim/optimizer.py, profile_hook_step.
constexpr std::string_view kOptimizerRange = "Optimizer.step#";

// Phase of the innermost range, from `at` outwards, whose name tells one.
MaybePhase phase_around(const Trace& trace, std::int32_t at, const KernelNames& names) {
  for (; at >= 0; at = trace.ranges[static_cast<std::size_t>(at)].parent)
    if (const RangeName* line = names.range(trace.ranges[static_cast<std::size_t>(at)].name))
      return line->phase;
  return std::nullopt;
}

// Assigns phases to the kernels of one step whose ranges tell none. Kernels between the last
// backward pass and the optimizer belong to the optimizer: gradients are clipped there. All others
// belong to the forward pass if the step has a backward pass; if not, they stay unknown.
void tell_unmarked(const Trace& trace, const std::vector<std::size_t>& kernels,
                   std::vector<MaybePhase>& phases) {
  const auto last_launch = [&](Phase phase) {
    std::optional<Seconds> last;
    for (const std::size_t kernel : kernels)
      if (phases[kernel] == phase)
        last = std::max(last.value_or(0_s), trace.kernels[kernel].launched);
    return last;
  };
  const std::optional<Seconds> backward = last_launch(Phase::kBackward);
  if (!backward) return;
  const std::optional<Seconds> optimizer = last_launch(Phase::kOptimizer);
  for (const std::size_t kernel : kernels) {
    if (phases[kernel]) continue;
    const Seconds at = trace.kernels[kernel].launched;
    phases[kernel] =
        at > *backward && optimizer && at < *optimizer ? Phase::kOptimizer : Phase::kForward;
  }
}

// Phase of a block's task, from the name that every lowering gives to the block.
MaybePhase phase_of(const program::Block& block, const program::Task& task) {
  if (task.optimizer || contains(block.name, "optimizer")) return Phase::kOptimizer;
  if (contains(block.name, "backward")) return Phase::kBackward;
  if (contains(block.name, "forward")) return Phase::kForward;
  return std::nullopt;
}

// When the host began each step, from the profiler's step marks; empty if there are none.
std::set<Seconds> marked_begins(const Trace& trace) {
  std::set<Seconds> begins;
  for (const HostRange& range : trace.ranges)
    if (range.name.starts_with(kStepRange)) begins.insert(range.start);
  return begins;
}

// When the host began each step, from the calls of optimizers, which PyTorch marks. A step ends
// with its optimizers: a backward pass between two calls belongs to the next step. Calls inside a
// backward pass are for single parameters and end no step.
// Not modelled: steps that skip the optimizer (after a loss overflow); they count as part of the
// next step.
std::set<Seconds> begins_behind_optimizers(const Trace& trace,
                                           const std::vector<MaybePhase>& phases,
                                           const KernelNames& names) {
  std::map<Seconds, Seconds> calls;  // start -> end
  for (const HostRange& range : trace.ranges)
    if (range.name.starts_with(kOptimizerRange) &&
        phase_around(trace, range.parent, names) != Phase::kBackward)
      calls.emplace(range.start, range.start + range.lasted);
  std::set<Seconds> backward;  // launch times, as kernels are in the GPU's order
  for (std::size_t k = 0; k < phases.size(); ++k)
    if (phases[k] == Phase::kBackward) backward.insert(trace.kernels[k].launched);
  std::set<Seconds> begins{0_s};
  for (auto call = calls.begin(); call != calls.end() && std::next(call) != calls.end(); ++call) {
    const auto launched = backward.upper_bound(call->second);
    if (launched != backward.end() && *launched < std::next(call)->first)
      begins.insert(call->second);
  }
  return begins;
}

// When the host began each step of the trace; a single step if nothing tells.
std::vector<Seconds> steps_of(const Trace& trace, const std::vector<MaybePhase>& phases,
                              const KernelNames& names) {
  std::set<Seconds> begins = marked_begins(trace);
  if (begins.empty()) begins = begins_behind_optimizers(trace, phases, names);
  return {begins.begin(), begins.end()};
}

}  // namespace

void internal::StepMatch::give(std::size_t kernel, std::size_t task, MatchedBy by) {
  ProfiledTask& one = match.tasks[task];
  one.measured += trace.kernels[kernel].lasted;
  one.kernels += 1;
  one.by = by;
  match.kernels[kernel] = by;
  match.task_of[kernel] = static_cast<std::int32_t>(task);
}

Seconds Match::time_of(const Trace& trace, MatchedBy by) const {
  Seconds sum{};
  for (std::size_t k = 0; k < kernels.size(); ++k)
    if (kernels[k] == by) sum += trace.kernels[k].lasted;
  return sum;
}

double Match::share(const Trace& trace) const {
  return 1 - time_of(trace, MatchedBy::kNothing) / trace.gpu_time();
}

double Match::shown() const {
  Seconds all{};
  Seconds found{};
  for (const ProfiledTask& task : tasks) {
    if (!std::holds_alternative<Kernel>(task.task->body)) continue;
    all += task.expected;
    if (task.by == MatchedBy::kShape || task.by == MatchedBy::kOrder) found += task.expected;
  }
  return all > 0_s ? found / all : 0;
}

Match match(const program::Program& program, std::int32_t rank, const Trace& trace,
            const KernelNames& names, const TimeOf& expected) {
  const auto role = std::ranges::find_if(program.roles, [&](const program::Role& one) {
    return std::ranges::binary_search(one.ranks, rank);
  });
  FORESHARD_CHECK(role != program.roles.end());
  const program::Expander expander(program);
  const auto expansion = expander.expand(static_cast<std::size_t>(role - program.roles.begin()));

  Match result;
  const std::size_t count = trace.kernels.size();
  result.kernels.assign(count, MatchedBy::kNothing);
  result.task_of.assign(count, -1);
  std::vector<MaybePhase> phases(count);
  for (std::size_t k = 0; k < count; ++k) {
    result.line_of.push_back(names.kernel(trace.kernels[k].name));
    phases[k] = phase_around(trace, trace.kernels[k].range, names);
  }
  const std::vector<Seconds> begins = steps_of(trace, phases, names);
  result.steps = std::ssize(begins);
  for (std::size_t s = 0; s < begins.size(); ++s) {
    StepMatch step{.program = program,
                   .trace = trace,
                   .kernels = {},
                   .tasks = {},
                   .phase_of = phases,
                   .phase_of_task = {},
                   .ranks_of_task = {},
                   .match = result};
    for (std::size_t k = 0; k < count; ++k) {
      const Seconds at = trace.kernels[k].launched;
      if ((s == 0 || at >= begins[s]) && (s + 1 == begins.size() || at < begins[s + 1]))
        step.kernels.push_back(k);
    }
    tell_unmarked(trace, step.kernels, step.phase_of);
    step.phase_of_task.resize(result.tasks.size());
    step.ranks_of_task.resize(result.tasks.size());
    for (const program::Instance& instance : expansion.instances) {
      if (instance.stream < 0) continue;
      const program::Task& task = program::task_of(program, *role, instance);
      const program::Call& call = role->calls[static_cast<std::size_t>(instance.call)];
      step.tasks.push_back(result.tasks.size());
      result.tasks.push_back({.task = &task,
                              .block = static_cast<std::int32_t>(call.block.index()),
                              .call = instance.call,
                              .layer = call.layer(instance.iteration),
                              .step = static_cast<std::int32_t>(s),
                              .expected = expected(task),
                              .measured = {}});
      step.phase_of_task.push_back(phase_of(program.blocks[call.block.index()], task));
      const auto* what = std::get_if<program::Communication>(&task.body);
      step.ranks_of_task.push_back(what == nullptr ? 0
                                                   : program::size_of(program, what->group, rank));
    }
    internal::match_by_shape(step);
    internal::match_by_order(step);
    internal::match_by_place(step);
  }
  return result;
}

namespace {

std::vector<Leftover> most_first(
    const std::map<std::pair<std::string, std::string>, Leftover>& all) {
  std::vector<Leftover> result;
  result.reserve(all.size());
  for (const auto& entry : all) result.push_back(entry.second);
  std::ranges::stable_sort(result,
                           [](const Leftover& a, const Leftover& b) { return b.time < a.time; });
  return result;
}

std::string why_unmatched(const Trace& trace, const Match& match, std::size_t kernel) {
  const KernelName* line = match.line_of[kernel];
  if (line == nullptr) return "no line of the list of kernel names fits";
  if (line->kinds.empty()) return "no task stands for it";
  const bool product = std::ranges::find(line->kinds, "gemm") != line->kinds.end();
  if (const auto shape = product_shape(trace, trace.kernels[kernel]); shape && product)
    return "no task is left with its shape, " + std::to_string(shape->m) + "x" +
           std::to_string(shape->n) + "x" + std::to_string(shape->k) +
           (shape->batch > 1 ? " batch " + std::to_string(shape->batch) : "");
  return "no task is left that is " + quoted_choice(line->kinds);
}

}  // namespace

std::vector<Leftover> unmatched_kernels(const Trace& trace, const Match& match) {
  std::map<std::pair<std::string, std::string>, Leftover> all;
  for (std::size_t k = 0; k < match.kernels.size(); ++k) {
    if (match.kernels[k] != MatchedBy::kNothing) continue;
    const std::string why = why_unmatched(trace, match, k);
    Leftover& one = all[{trace.kernels[k].name, why}];
    one.name = trace.kernels[k].name;
    one.why = why;
    one.count += 1;
    one.time += trace.kernels[k].lasted;
  }
  return most_first(all);
}

std::vector<Leftover> unmatched_tasks(const program::Program& program, const Match& match) {
  std::map<std::pair<std::string, std::string>, Leftover> all;
  for (const ProfiledTask& task : match.tasks) {
    if (task.by != MatchedBy::kNothing) continue;
    const std::string& block = program.blocks[static_cast<std::size_t>(task.block)].name;
    Leftover& one = all[{block, task.task->name}];
    one.name = block + " / " + task.task->name;
    one.count += 1;
    one.time += task.expected;
  }
  return most_first(all);
}

}  // namespace foreshard::profile
