#include "strategies/program/lower/era.h"

#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace foreshard::lower {
namespace {

using program::CollectiveKind;
using program::Communication;
using program::Task;

bool blocks(const Task& task) {
  if (std::holds_alternative<Kernel>(task.body)) return true;
  const auto* communication = std::get_if<Communication>(&task.body);
  return communication != nullptr && communication->kind != CollectiveKind::kSend &&
         communication->kind != CollectiveKind::kReceive;
}

// Inserts after each task the task that `behind` returns for it and its index, if any. Returns the
// new index of each task.
template <class Behind>
std::vector<std::int32_t> interleaved(program::Block& block, Behind behind) {
  std::vector<Task> tasks;
  std::vector<std::int32_t> place;
  for (Task& task : block.tasks) {
    for (std::int32_t& earlier : task.after) earlier = place[static_cast<std::size_t>(earlier)];
    place.push_back(static_cast<std::int32_t>(tasks.size()));
    std::optional<Task> next = behind(task, place.back());
    tasks.push_back(std::move(task));
    if (next) tasks.push_back(*std::move(next));
  }
  block.tasks = std::move(tasks);
  return place;
}

}  // namespace

void leave_matrix_units(program::Block& block) {
  for (Task& task : block.tasks) {
    auto* kernel = std::get_if<Kernel>(&task.body);
    auto* gemm = kernel == nullptr ? nullptr : std::get_if<Gemm>(kernel);
    if (gemm != nullptr && gemm->batch > 1 && !has_aligned_rows(*gemm)) gemm->matrix_units = false;
  }
}

void launch_experts(program::Block& block, Seconds product, Seconds pass) {
  const auto work_of = [&](const Kernel& kernel) {
    if (const auto* gemm = std::get_if<Gemm>(&kernel))
      return gemm->apart ? static_cast<double>(gemm->batch) * product : 0_s;
    const auto* shared = std::get_if<Pass>(&kernel);
    if (shared == nullptr || shared->launches == 1) return 0_s;
    return static_cast<double>(shared->launches) * pass;
  };
  interleaved(block, [&](const Task& task, std::int32_t) -> std::optional<Task> {
    const auto* kernel = std::get_if<Kernel>(&task.body);
    const Seconds work = kernel == nullptr ? 0_s : work_of(*kernel);
    if (work == 0_s) return std::nullopt;
    return Task{.name = "launches." + task.name, .body = program::HostWork{work}};
  });
}

void block_launches(program::Program& program) {
  std::vector<std::vector<std::int32_t>> places;  // block -> the new index of each of its tasks
  const auto wait = [](const Task& task, std::int32_t place) -> std::optional<Task> {
    if (!blocks(task)) return std::nullopt;
    return Task{.name = "launch", .body = program::Sync{}, .after = {place}};
  };
  for (program::Block& block : program.blocks) places.push_back(interleaved(block, wait));
  for (program::Role& role : program.roles) {
    for (program::Call& call : role.calls) {
      for (program::CallDependency& earlier : call.after) {
        if (earlier.task < 0) continue;
        const auto block = role.calls[static_cast<std::size_t>(earlier.call)].block;
        earlier.task = places[block.index()][static_cast<std::size_t>(earlier.task)];
      }
    }
  }
}

}  // namespace foreshard::lower
