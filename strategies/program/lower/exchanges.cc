#include "strategies/program/lower/exchanges.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>
#include <variant>

#include "strategies/program/lower/block.h"

namespace foreshard::lower {
namespace {

using program::Communication;
using program::Task;

bool exchanges_tokens(const Task& task) {
  const auto* communication = std::get_if<Communication>(&task.body);
  return communication != nullptr && communication->purpose == program::Purpose::kExpert;
}

const Communication* all_to_all(const Task& task) {
  const auto* communication = std::get_if<Communication>(&task.body);
  const bool is_one =
      communication != nullptr && communication->kind == program::CollectiveKind::kAllToAll;
  return is_one ? communication : nullptr;
}

// `next` sends on what `task`, at `index`, brought.
bool goes_on(const Task& task, std::int32_t index, const Task& next) {
  return all_to_all(task) != nullptr && all_to_all(next) != nullptr && task.name == next.name &&
         next.after == std::vector{index} && (exchanges_tokens(task) || exchanges_tokens(next));
}

}  // namespace

void join_exchanges(program::Block& block, const std::vector<MeshAxis>& mesh) {
  std::vector<Task> tasks;
  std::vector<std::int32_t> place;  // of each task of the block
  for (Task& task : block.tasks) {
    for (std::int32_t& earlier : task.after) earlier = place[static_cast<std::size_t>(earlier)];
    const auto last = static_cast<std::int32_t>(tasks.size()) - 1;
    if (last < 0 || !goes_on(tasks.back(), last, task)) {
      place.push_back(last + 1);
      tasks.push_back(std::move(task));
      continue;
    }
    place.push_back(last);
    auto& joined = std::get<Communication>(tasks.back().body);
    const Communication& more = *all_to_all(task);
    auto& axes = std::get<program::AxisGroup>(joined.group).axes;
    const auto& others = std::get<program::AxisGroup>(more.group).axes;
    axes.insert(axes.end(), others.begin(), others.end());
    std::ranges::sort(axes);
    joined.purpose = program::Purpose::kExpert;
    joined.tag = tag_of({axes.begin(), axes.end()}, mesh);
  }
  block.tasks = std::move(tasks);
}

void exchange_once_per_node(program::Block& block, const program::TokenRouting& routing,
                            const std::vector<MeshAxis>& mesh) {
  for (Task& task : block.tasks) {
    if (!exchanges_tokens(task)) continue;
    auto& exchange = std::get<Communication>(task.body);
    if (exchange.kind != program::CollectiveKind::kAllToAll) continue;
    const auto& axes = std::get<program::AxisGroup>(exchange.group).axes;
    const double copies = program::expected_places(routing, ways({axes.begin(), axes.end()}, mesh));
    exchange.kind = program::CollectiveKind::kTokenExchange;
    exchange.bytes = exchange.bytes * (copies / routing.per_token);
    exchange.routing = routing;
  }
}

std::vector<BlockPart> cut_at_exchanges(const program::Block& block) {
  std::vector<BlockPart> parts(1);
  std::vector<EarlierTask> place_of;  // by task of the block
  std::vector<bool> brings_tokens;    // likewise: an exchange, or communication behind one
  for (const Task& task : block.tasks) {
    const auto is_open = [&](std::int32_t index) {
      const auto i = static_cast<std::size_t>(index);
      return brings_tokens[i] && place_of[i].part + 1 == static_cast<std::int32_t>(parts.size());
    };
    const bool waits = std::ranges::any_of(task.after, is_open);
    if (std::holds_alternative<Kernel>(task.body) && waits) parts.emplace_back();
    brings_tokens.push_back(exchanges_tokens(task) ||
                            (std::holds_alternative<Communication>(task.body) && waits));
    BlockPart& part = parts.back();
    const auto index = static_cast<std::int32_t>(parts.size()) - 1;
    place_of.push_back({index, static_cast<std::int32_t>(part.block.tasks.size())});
    Task& own = part.block.tasks.emplace_back(task);
    own.after.clear();
    for (const std::int32_t earlier : task.after) {
      const EarlierTask& place = place_of[static_cast<std::size_t>(earlier)];
      if (place.part == index)
        own.after.push_back(place.task);
      else
        part.after.push_back(place);
    }
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].block.name = parts.size() == 1 ? block.name : fmt::format("{}.{}", block.name, i);
    auto& after = parts[i].after;
    std::ranges::sort(after);
    after.erase(std::unique(after.begin(), after.end()), after.end());
  }
  return parts;
}

program::TokenRouting routing_of(const Model& model) {
  const auto count = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  return {.experts = count(model.experts),
          .per_token = count(model.experts_per_token),
          .groups = count(model.expert_groups),
          .groups_per_token = count(model.groups_per_token)};
}

}  // namespace foreshard::lower
