#include "strategies/program/lower/era.h"

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

// Puts a wait behind each task that blocks. Returns where each task is now.
std::vector<std::int32_t> blocked(program::Block& block) {
  std::vector<Task> tasks;
  std::vector<std::int32_t> place;
  for (Task& task : block.tasks) {
    for (std::int32_t& earlier : task.after) earlier = place[static_cast<std::size_t>(earlier)];
    place.push_back(static_cast<std::int32_t>(tasks.size()));
    const bool waits = blocks(task);
    tasks.push_back(std::move(task));
    if (waits)
      tasks.push_back({.name = "launch", .body = program::Sync{}, .after = {place.back()}});
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

void block_launches(program::Program& program) {
  std::vector<std::vector<std::int32_t>> places;  // by block: where each of its tasks has moved to
  for (program::Block& block : program.blocks) places.push_back(blocked(block));
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
