#include "strategies/program/lower/legacy_behavior.h"

#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace foreshard::lower {
namespace {

using program::CollectiveKind;
using program::Communication;
using program::Task;

// Whether the host waits for the task under CUDA_LAUNCH_BLOCKING=1.
bool blocks_host(const Task& task) {
  if (std::holds_alternative<Kernel>(task.body)) return true;
  const auto* communication = std::get_if<Communication>(&task.body);
  return communication != nullptr && communication->kind != CollectiveKind::kSend &&
         communication->kind != CollectiveKind::kReceive;
}

// Calls `next_of(task, new index)` for each task of the block and inserts the task that it returns,
// if any, after that task. Returns old index of each task -> new index.
// Invariant of a block: tasks wait (Task::after) for earlier ones only.
template <class NextOf>
std::vector<std::int32_t> interleaved(program::Block& block, NextOf next_of) {
  std::vector<Task> tasks;
  std::vector<std::int32_t> new_index;
  for (Task& task : block.tasks) {
    for (std::int32_t& earlier : task.after) earlier = new_index[static_cast<std::size_t>(earlier)];
    new_index.push_back(static_cast<std::int32_t>(tasks.size()));
    std::optional<Task> next = next_of(task, new_index.back());
    tasks.push_back(std::move(task));
    if (next) tasks.push_back(*std::move(next));
  }
  block.tasks = std::move(tasks);
  return new_index;
}

}  // namespace

void avoid_unaligned_matrix_units(program::Block& block) {
  for (Task& task : block.tasks) {
    auto* kernel = std::get_if<Kernel>(&task.body);
    auto* gemm = kernel == nullptr ? nullptr : std::get_if<Gemm>(kernel);
    if (gemm != nullptr && gemm->batch > 1 && !has_aligned_rows(*gemm)) gemm->matrix_units = false;
  }
}

void launch_experts(program::Block& block, Seconds product_time, Seconds pass_time) {
  const auto work_of = [&](const Kernel& kernel) {
    if (const auto* gemm = std::get_if<Gemm>(&kernel))
      return gemm->apart ? static_cast<double>(gemm->batch) * product_time : 0_s;
    const auto* pass = std::get_if<Pass>(&kernel);
    if (pass == nullptr || pass->launches == 1) return 0_s;
    return static_cast<double>(pass->launches) * pass_time;
  };
  // The new indices are not needed: no call refers to a task of the block yet.
  interleaved(block, [&](const Task& task, std::int32_t) -> std::optional<Task> {
    const auto* kernel = std::get_if<Kernel>(&task.body);
    const Seconds work = kernel == nullptr ? 0_s : work_of(*kernel);
    if (work == 0_s) return std::nullopt;
    return Task{.name = "launches." + task.name, .body = program::HostWork{work}};
  });
}

void make_launches_blocking(program::Program& program) {
  std::vector<std::vector<std::int32_t>> new_index;  // block -> task -> its new index
  const auto wait = [](const Task& task, std::int32_t index) -> std::optional<Task> {
    if (!blocks_host(task)) return std::nullopt;
    return Task{.name = "launch", .body = program::Sync{}, .after = {index}};
  };
  for (program::Block& block : program.blocks) new_index.push_back(interleaved(block, wait));
  for (program::Role& role : program.roles) {
    for (program::Call& call : role.calls) {
      for (program::CallDependency& earlier : call.after) {
        if (earlier.task < 0) continue;  // It waits for the whole call.
        const auto block = role.calls[static_cast<std::size_t>(earlier.call)].block;
        earlier.task = new_index[block.index()][static_cast<std::size_t>(earlier.task)];
      }
    }
  }
}

}  // namespace foreshard::lower
