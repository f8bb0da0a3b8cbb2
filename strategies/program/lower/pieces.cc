#include "strategies/program/lower/pieces.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

#include "strategies/program/lower/block.h"

namespace foreshard::lower {
namespace {

using program::Block;
using program::Communication;
using program::Task;

// The last kernel or communication on the stream; -1: none.
std::int32_t last_on(const Block& block, StreamIndex where) {
  for (std::size_t t = block.tasks.size(); t-- > 0;) {
    const Task& task = block.tasks[t];
    const bool runs = std::holds_alternative<Kernel>(task.body) ||
                      std::holds_alternative<Communication>(task.body);
    if (runs && task.stream == stream(where)) return static_cast<std::int32_t>(t);
  }
  return -1;
}

}  // namespace

const Block& only_block(const Pieces& pieces) {
  FORESHARD_CHECK(is_one_block(pieces));
  return pieces.front().block;
}

void put_before(Block& block, std::vector<Task> tasks) {
  for (Task& task : block.tasks)
    for (std::int32_t& index : task.after) index += static_cast<std::int32_t>(tasks.size());
  block.tasks.insert(block.tasks.begin(), std::move_iterator(tasks.begin()),
                     std::move_iterator(tasks.end()));
}

std::vector<std::int32_t> last_uses(const Block& block) {
  std::vector<std::int32_t> last;
  for (const StreamIndex where : {kComputeStream, kTensorStream})
    if (const std::int32_t task = last_on(block, where); task >= 0) last.push_back(task);
  std::ranges::sort(last);
  return last;
}

std::int32_t open_conversion(const Block& block) {
  std::vector<bool> is_awaited(block.tasks.size(), false);
  for (const Task& task : block.tasks)
    if (!std::holds_alternative<program::Free>(task.body))
      for (const std::int32_t earlier : task.after)
        is_awaited[static_cast<std::size_t>(earlier)] = true;
  for (std::size_t t = block.tasks.size(); t-- > 0;)
    if (std::holds_alternative<Communication>(block.tasks[t].body) &&
        block.tasks[t].stream == stream(kTensorStream) && !is_awaited[t])
      return static_cast<std::int32_t>(t);
  return -1;
}

}  // namespace foreshard::lower
